package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// pause waits until it is told to end: the program of the first container of a pod.
func pause() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	<-end
}

// web answers every request with the name of its pod.
func web() error {
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", ":8080")
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, name)
	})}
	return server.Serve(l)
}

// get prints what an address answers.
func get(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: get URL")
	}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, args[0], http.NoBody)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Timeout: 5 * time.Second}).Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(os.Stdout, answer.Body)
	return errors.Join(err, answer.Body.Close())
}
