# make demo       the main job on a real HBase, in plain words      (KEEP=1 leaves the servers up)
# make test       every test, the real servers included
# make test-fast  the tests that need no JVM, without the longest of S3 and GCS; a minute
# make build      bin/hbackup
# make bench      our own speed; bench-peers compares with HBase's tools, bench-rclone with rclone, bench-committers ways to commit, bench-memory shows peaks
# make test-peers HBase's tools on what we wrote to S3 (fetches 650 MB once)

GO    ?= go
FAST   = $(shell $(GO) list ./... | grep -v '^hbackup/e2e')
E2E    = $(shell $(GO) list ./e2e/...)

.PHONY: build demo test test-fast test-e2e test-peers bench bench-committers bench-memory bench-peers bench-rclone generate vet

# The tag leaves out what Google's client needs for gRPC alone: a third of the size and of the time to start.
build:
	$(GO) build -trimpath -tags disable_grpc_modules -ldflags "-s -w -X main.version=$$(git describe --always --dirty 2>/dev/null || echo dev)" -o bin/hbackup ./cmd/hbackup

demo: build
	@e2e/need.sh
	$(GO) run ./e2e/cmd/demo -hbackup bin/hbackup $(if $(KEEP),-keep)

test: vet
	@e2e/need.sh
	$(GO) test -timeout 5m $(FAST)
	$(GO) run ./e2e/cmd/servers prepare
	$(GO) test -p 1 -timeout 30m $(E2E)

test-fast: vet
	$(GO) test -short -timeout 5m $(FAST)

test-e2e:
	@e2e/need.sh
	$(GO) run ./e2e/cmd/servers prepare
	$(GO) test -p 1 -timeout 30m $(E2E)

test-peers: build
	@e2e/need.sh
	$(GO) run ./e2e/cmd/servers prepare -peers
	$(GO) test -tags peers -p 1 -timeout 30m ./e2e/peers/...

bench:
	$(GO) test -run '^$$' -bench . -benchmem $(FAST)

bench-committers: build
	@e2e/need.sh
	$(GO) run ./e2e/cmd/servers prepare 2.6
	$(GO) run ./e2e/cmd/benchcommitters -hbackup bin/hbackup

bench-peers: build
	@e2e/need.sh
	$(GO) run ./e2e/cmd/servers prepare -peers
	$(GO) run ./e2e/cmd/benchpeers -hbackup bin/hbackup

bench-rclone:
	$(GO) run ./e2e/cmd/benchrclone

bench-memory:
	$(GO) run ./e2e/cmd/benchmemory

generate:
	$(GO) generate ./...

vet:
	@test -z "$$(gofmt -l .)" || { echo "not formatted:"; gofmt -l .; exit 1; }
	$(GO) vet ./...
