package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

// manifests is the folder of static pod manifests.
const manifests = "/etc/kubernetes/manifests"

// pods are the pods of an instance.
type pods struct {
	self   *Instance
	mu     sync.Mutex
	static map[string]*pod    // static pods by file
	bound  map[types.UID]*pod // pods from the API server, by UID
	told   map[string]string  // the status last sent to the API server, by name
}

func newPods(self *Instance) *pods {
	return &pods{self: self, static: map[string]*pod{}, bound: map[types.UID]*pod{}, told: map[string]string{}}
}

// watchManifests starts, replaces and stops static pods when their manifests change,
// until the context ends. It does not need an API server.
func (p *pods) watchManifests(ctx context.Context) {
	await(ctx, func() bool {
		files, _ := filepath.Glob(manifests + "/*.yaml") // the pattern is valid
		seen := map[string]bool{}
		for _, file := range files {
			seen[file] = true
			p.static1(ctx, file)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		for file, pod := range p.static {
			if !seen[file] {
				log.Printf("static pod %s is removed", pod.object.Name)
				pod.stop()
				delete(p.static, file)
			}
		}
		return false
	})
}

// static1 runs the static pod of one file.
func (p *pods) static1(ctx context.Context, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		return // it was just deleted
	}
	sum := sha256.Sum256(text)
	hash := hex.EncodeToString(sum[:16])
	p.mu.Lock()
	defer p.mu.Unlock()
	have := p.static[file]
	if have != nil && have.hash == hash {
		return
	}
	object := &corev1.Pod{}
	if err := yaml.Unmarshal(text, object); err != nil || object.Name == "" {
		return // the file is incomplete
	}
	if have != nil {
		log.Printf("static pod %s is replaced", have.object.Name)
		have.stop()
	}
	if object.Spec.RestartPolicy == "" {
		object.Spec.RestartPolicy = corev1.RestartPolicyAlways
	}
	pod, err := runPod(ctx, object, hash)
	if err != nil {
		log.Printf("static pod %s: %v", object.Name, err)
		return
	}
	log.Printf("static pod %s runs", object.Name)
	p.static[file] = pod
}

// serve creates mirror pods in the API server, and runs the pods that are bound to the
// node.
func (p *pods) serve(ctx context.Context, client kubernetes.Interface, n *registration) {
	last := ""
	await(ctx, func() bool {
		err := p.round(ctx, client, n)
		if err != nil && err.Error() != last {
			log.Printf("kubelet: pods: %v", err)
		}
		last = ""
		if err != nil {
			last = err.Error()
		}
		return false
	})
}

func (p *pods) round(ctx context.Context, client kubernetes.Interface, n *registration) error {
	name := n.kubelet.nodeName()
	list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	mirrors := map[string]*corev1.Pod{}
	wanted := map[types.UID]bool{}
	for i := range list.Items {
		object := &list.Items[i]
		wanted[object.UID] = true
		if _, mirror := object.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
			mirrors[object.Name] = object
			continue
		}
		if err := p.bound1(ctx, client, object); err != nil {
			return err
		}
	}
	for uid, pod := range p.bound {
		if !wanted[uid] {
			pod.stop()
			delete(p.bound, uid)
		}
	}
	return p.mirror(ctx, client, n, mirrors)
}

// bound1 runs one pod, or stops it if it is being deleted, and sends its status.
func (p *pods) bound1(ctx context.Context, client kubernetes.Interface, object *corev1.Pod) error {
	pod := p.bound[object.UID]
	if object.DeletionTimestamp != nil {
		if pod != nil {
			pod.stop()
		}
		now := int64(0)
		return ignoreNotFound(client.CoreV1().Pods(object.Namespace).Delete(ctx, object.Name, metav1.DeleteOptions{
			GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &object.UID},
		}))
	}
	if pod == nil {
		if object.Status.Phase == corev1.PodSucceeded || object.Status.Phase == corev1.PodFailed {
			return nil
		}
		var err error
		if pod, err = runPod(ctx, object, ""); err != nil {
			return err
		}
		p.bound[object.UID] = pod
	}
	return p.tell(ctx, client, object, pod)
}

// mirror creates the mirror pods of static pods.
func (p *pods) mirror(ctx context.Context, client kubernetes.Interface, n *registration, have map[string]*corev1.Pod) error {
	if n.uid == "" {
		return nil // the node owns them
	}
	node := n.kubelet.nodeName()
	for _, pod := range p.static {
		name := pod.object.Name + "-" + node
		object := have[name]
		delete(have, name)
		if object != nil && object.Annotations[corev1.MirrorPodAnnotationKey] != pod.hash {
			if err := remove(ctx, client, object); err != nil {
				return err
			}
			object = nil
		}
		if object == nil {
			var err error
			if object, err = client.CoreV1().Pods(pod.object.Namespace).Create(ctx, mirrorOf(pod, node, n.uid), metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		if err := p.tell(ctx, client, object, pod); err != nil {
			return err
		}
	}
	for _, object := range have { // without a manifest
		if err := remove(ctx, client, object); err != nil {
			return err
		}
	}
	return nil
}

func mirrorOf(p *pod, node, uid string) *corev1.Pod {
	object := p.object.DeepCopy()
	object.Name += "-" + node
	object.Spec.NodeName = node
	object.UID, object.ResourceVersion = "", ""
	yes := true
	object.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: types.UID(uid), Controller: &yes}}
	if object.Annotations == nil {
		object.Annotations = map[string]string{}
	}
	object.Annotations[corev1.MirrorPodAnnotationKey] = p.hash
	object.Annotations["kubernetes.io/config.hash"] = p.hash
	object.Annotations["kubernetes.io/config.source"] = "file"
	object.Annotations["kubernetes.io/config.seen"] = p.began.Format("2006-01-02T15:04:05.000000000Z07:00")
	object.Spec.Tolerations = append(object.Spec.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})
	return object
}

// tell sends the status of a pod if it has changed, or if others have changed it, as that
// of pods on a Node that is not ready.
func (p *pods) tell(ctx context.Context, client kubernetes.Interface, object *corev1.Pod, pod *pod) error {
	status := pod.status(ctx, p.self.nodeIP())
	text, err := json.Marshal(status)
	if err != nil {
		return err
	}
	key := string(object.UID)
	if p.told[key] == string(text) && isReady(status) == isReady(object.Status) {
		return nil
	}
	object.Status = status
	if _, err := client.CoreV1().Pods(object.Namespace).UpdateStatus(ctx, object, metav1.UpdateOptions{}); err != nil {
		return ignoreNotFound(err)
	}
	p.told[key] = string(text)
	return nil
}

func isReady(s corev1.PodStatus) bool {
	return slices.ContainsFunc(s.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func remove(ctx context.Context, client kubernetes.Interface, object *corev1.Pod) error {
	now := int64(0)
	return ignoreNotFound(client.CoreV1().Pods(object.Namespace).Delete(ctx, object.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) || err != nil && strings.Contains(err.Error(), "object has been modified") {
		return nil // the next round tries again
	}
	return err
}
