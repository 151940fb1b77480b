# Everything a contributor runs. Needs Go and make; docs/testing.md says what
# each target checks and what else it needs.

BIN     := bin/clusterawsadm
VERSION ?= $(shell git describe --tags --dirty 2>/dev/null)
LINT    := go tool -modfile=tools/go.mod golangci-lint
FUZZ    ?= 30s

# The version of GoReleaser in .github/workflows/release.yml, too.
GORELEASER := v2.16.0
SWEEPS  := ./internal/engine/run ./internal/engine/topology ./internal/engine/incluster ./internal/engine/teardown ./internal/engine/adopt ./test/lives
GOLDEN  := ./internal/cli ./internal/awssim/wire ./internal/render ./pkg/bootstrap ./internal/engine/boot ./internal/engine/manifest/loader

# The build and the tests compile every package with the same flags, and share
# the build cache.
export GOFLAGS := -trimpath $(filter-out -trimpath,$(shell go env GOFLAGS))
export CGO_ENABLED := 0

.DEFAULT_GOAL := help
.PHONY: help build quickstart test sweep proof race lint fmt shape fuzz golden picture recording docs site release-check cover fleet bench start e2e campaign witnesses upstream oracle kubernetes lab ready management aws ci clean requires-e2e requires-witnesses requires-kubernetes requires-lab requires-ready

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|'

build: ## build bin/clusterawsadm
	go build -buildvcs=auto -ldflags '-s -w -X github.com/clusterawsadm/clusterawsadm/internal/cli/version.gitVersion=$(VERSION)' -o $(BIN) ./cmd/clusterawsadm

quickstart: build ## create, describe, plan and delete a cluster on a simulated AWS
	./hack/quickstart.sh $(BIN)

# GOGC: the tests allocate much and keep little; collecting less often saves a
# fifth of their time.
test: export GOGC = 800
test: ## run the hermetic tests, with a sample of each sweep
	go test -timeout 15m ./...

sweep: export GOGC = 800
sweep: PART ?= 1
sweep: ## run the sweeps in full: every call, every fault, every example; on all cores; or PART=2/3 of them
	SWEEP=$(PART) go test -count 1 -shuffle=on -timeout 60m $(SWEEPS) ./internal/cloud

proof: export GOGC = 800
proof: ## try every wrong value in every field of the examples: the plan refuses it, or create succeeds; an hour
	SWEEP=1 go test -count 1 -timeout 2h -run TestPlanIsAProof -v ./test/proof

race: export CGO_ENABLED = 1
race: ## run the hermetic tests with the race detector; needs a C compiler
	go test -race -shuffle=on -timeout 60m ./...

lint: ## run the linters, and check that the other modules agree with go.mod
	for m in test/oracle test/embed e2e/kubernetes; do (cd $$m && go list -deps -test ./... >/dev/null) || exit 1; done
	$(LINT) run ./...
	$(LINT) run --build-tags e2e ./e2e/... ./test/...

fmt: ## format the code
	$(LINT) fmt

shape: ## show the longest files and functions, the median and the 90th percentile
	go test -run TestShape -v ./e2e

fuzz: ## look for manifests that make the loader panic, for FUZZ=30s
	go test -run '^$$' -fuzz . -fuzztime $(FUZZ) ./internal/engine/manifest/loader

golden: ## rewrite the expected output of tests; review the diff like code
	go test $(GOLDEN) -update

picture: build ## redraw the README's picture of the graph
	$(BIN) cluster graph -f configs/quickstart.yaml --summary -o svg > docs/quickstart.svg

recording: build ## record the README's terminal session again; needs asciinema, Node.js and npm
	mkdir -p .cache
	PATH=$(CURDIR)/bin:$$PATH asciinema rec -q --overwrite --cols 100 --rows 32 -c hack/recording.sh .cache/recording.cast
	node hack/cut-recording.mjs .cache/recording.cast
	npx --yes svg-term-cli@2.1.1 --in .cache/recording.cast --out docs/recording.svg --window --no-cursor

docs: ## write the reference of all commands: docs/commands for the site, docs/man for a release
	go run ./internal/cli/internal/docgen

site: docs site/node_modules/.package-lock.json ## build the documentation site in .cache/site; fails on dead links; needs Node.js and npm
	cd site && npx vitepress build

site/node_modules/.package-lock.json: site/package-lock.json
	npm ci --no-audit --no-fund --prefix site

release-check: ## build a snapshot of the release and check all of its files, without publishing it; SBOMs need syft, the signature cosign, the image docker
	GORELEASER="go run github.com/goreleaser/goreleaser/v2@$(GORELEASER)" hack/release-check.sh

cover: ## show the test coverage of each package
	go test -cover ./internal/... ./pkg/...

fleet: export GOGC = 800
fleet: ## create and delete 50 clusters at once in one simulated account, which share its rate limits
	FLEET=50 go test -count 1 -timeout 15m -run 'TestFleet$$' -v ./test/lives

bench: ## measure calls, time and memory for 3, 100 and 1000 workers
	FIGURES=1 go test -count 1 -run TestFigures -v ./test/lives

start: build ## measure how long bin/clusterawsadm takes to start, and how large it is
	go test -tags e2e -run '^$$' -bench Start -benchtime 40x ./e2e

e2e: requires-e2e build oracle kubernetes witnesses upstream site ## run the binary against moto_server, and kill it at random moments
	go test -tags e2e -count 1 -timeout 25m -p 1 ./e2e ./test/conformance

campaign: requires-e2e build ## create and delete 200 clusters on moto_server while requests fail and processes are killed; an hour
	E2E_LIVES=200 go test -tags e2e -count 1 -timeout 4h -run TestKilled -v ./e2e

witnesses: requires-witnesses test/iamjudge/node_modules/.package-lock.json ## check all calls against AWS's API models and an IAM evaluator
	go test -tags e2e -count 1 -timeout 15m -run 'TestAPIModels|TestPolicyIsJudged' ./test/lives

upstream: ## run all manifests of Cluster API Provider AWS, of its tests and of its older releases on the simulated AWS
	go test -tags e2e -count 1 -timeout 10m -run 'TestUpstreamsManifests|TestUpstreamsReleases' ./test/lives

test/iamjudge/node_modules/.package-lock.json: test/iamjudge/package-lock.json
	npm ci --no-audit --no-fund --prefix test/iamjudge

oracle: ## compare boot data with Cluster API's own code and Ignition's validator
	cd test/oracle && go test ./...

kubernetes: requires-kubernetes build ## run the binary against a real kube-apiserver; needs etcd, and minutes to build for the first time
	cd e2e/kubernetes && go test -count 1 -timeout 20m -v . ./controlplane/...

lab: requires-lab build ## boot clusters from real user data: cloud-init, kubeadm, etcd, kube-*; needs root, and minutes to build for the first time
	cd e2e/kubernetes && go test -count 1 -timeout 40m -v -skip 'TestManagement|TestHandover|TestTakeback|TestReady' ./lab

ready: requires-ready build ## as lab, with the real containerd, kubelet, flannel, CoreDNS and cloud controller manager; needs root, and minutes to build for the first time
	cd e2e/kubernetes && go test -count 1 -timeout 40m -v -run TestReady ./lab

# What is not installed is told before anything is built.
requires-e2e:
	@hack/require.sh git moto_server cfn-lint aws etcd node npm

requires-witnesses:
	@hack/require.sh aws node npm

requires-kubernetes:
	@hack/require.sh etcd

requires-lab:
	@hack/require.sh root moto_server aws cloud-init etcd ip

requires-ready: requires-lab
	@hack/require.sh containerd runc /usr/lib/cni/bridge iptables busybox gcc

management: export LAB_QUIET ?= 10m
management: requires-lab build ## hand clusters over to the real controllers of a management cluster, and take them back; needs root, and minutes to build for the first time
	cd e2e/kubernetes && go test -count 1 -timeout 60m -v -run 'TestManagement|TestHandover|TestTakeback' ./lab

aws: build ## create and delete a small cluster in a real AWS account; asks first, and costs money
	./hack/aws.sh $(BIN)

ci: lint test sweep e2e lab management ready ## what CI runs

clean: ## remove bin
	rm -rf bin
