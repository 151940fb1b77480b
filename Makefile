# Everything a contributor runs. Needs Go and make, and nothing else but for
# "make e2e", which needs moto_server, cfn-lint, the AWS CLI and etcd, and for
# "make lab", which needs moto_server, the AWS CLI, cloud-init and iproute2.

BIN     := bin/clusterawsadm
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LINT    := go tool -modfile=tools/go.mod golangci-lint
FUZZ    ?= 30s
GOLDEN  := ./internal/cli ./internal/render ./pkg/bootstrap ./internal/engine/boot ./internal/engine/manifest

.DEFAULT_GOAL := help
.PHONY: help build quickstart test race lint fmt shape fuzz golden picture cover bench start e2e oracle kubernetes lab ci clean

help: ## show what there is to make
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|'

build: ## build bin/clusterawsadm, the same bytes on every machine
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X github.com/clusterawsadm/clusterawsadm/internal/cli/version.gitVersion=$(VERSION)' -o $(BIN) ./cmd/clusterawsadm

quickstart: build ## create, describe, plan and delete a cluster on a simulated AWS
	./hack/quickstart.sh $(BIN)

# What the tests keep is small and what they throw away is much: they run a
# fifth faster when less of it is collected.
test: ## run all hermetic tests
	GOGC=800 go test -shuffle=on -timeout 30m ./...

race: ## run all hermetic tests with the race detector
	go test -race -shuffle=on ./...

lint: ## find what is not written as it should be
	$(LINT) run ./...
	$(LINT) run --build-tags e2e ./e2e/... ./test/...

fmt: ## write it as it should be written, as far as that goes by itself
	$(LINT) fmt

shape: ## show the longest files and functions; the tests fail over budget
	go test -run TestShape -v ./e2e

fuzz: ## look for manifests that make the loader panic, for FUZZ=30s
	go test -run '^$$' -fuzz . -fuzztime $(FUZZ) ./internal/engine/manifest

golden: ## rewrite the expected output of tests; look at the difference like at code
	go test $(GOLDEN) -update

picture: build ## draw the README's picture of the graph anew
	$(BIN) cluster graph -f configs/quickstart.yaml -o svg > docs/quickstart.svg

cover: ## show how much of each package is tested
	go test -cover ./internal/... ./pkg/...

bench: ## measure calls, time and memory for 3, 100 and 1000 workers
	FIGURES=1 go test -count 1 -run TestFigures -v ./pkg/reconcile

start: build ## measure how long bin/clusterawsadm takes to start, and how large it is
	go test -tags e2e -run '^$$' -bench Start -benchtime 40x ./e2e

e2e: build oracle kubernetes ## run the binary against moto_server, and kill it at random moments
	go test -tags e2e -count 1 -timeout 25m -p 1 ./e2e ./test/conformance

oracle: ## hold what machines boot with against Cluster API's own code and Ignition's validator
	cd test/oracle && go test ./...

kubernetes: build ## run the binary against a real kube-apiserver; needs etcd, and minutes to build for the first time
	cd e2e/kubernetes && go test -count 1 -timeout 20m -v . ./controlplane/...

lab: build ## boot clusters from real user data: cloud-init, kubeadm, etcd, kube-*; needs root, and minutes to build for the first time
	cd e2e/kubernetes && go test -count 1 -timeout 40m -v ./lab

ci: lint test e2e lab ## what CI runs

clean: ## remove what was built
	rm -rf bin
