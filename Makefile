# Tools are pinned in scripts/tools and run with `go run`, so that nothing has
# to be installed besides Go, make and git.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

main_sources := go.mod go.sum embed.go $(wildcard *.md) $(shell find docs activities interpreter internal playbooks starter worker workflows \
	-type f -not -name '*_test.go' -not -path '*/testdata/*' 2>/dev/null)
devserver_sources := $(shell find devserver -type f -not -name '*_test.go')
# The server that the starter brings up: temporal of PATH, or the one built here.
local_server := $(if $(or $(REPRISE_DEVSERVER),$(shell command -v temporal)),,bin/devserver)

.PHONY: help
help: ## print this
	@echo 'Reprise: durable YAML playbooks on Temporal'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: bin/starter $(local_server) ## run the example playbook with its API, a Temporal server and a worker
	@scripts/demo

.PHONY: build
build: bin/starter bin/worker bin/devserver ## build what has changed into bin/

bin/starter: $(main_sources)
	@scripts/compile . $@ ./starter

bin/worker: $(main_sources)
	@scripts/compile . $@ ./worker

bin/devserver: $(devserver_sources)
	@scripts/compile devserver $@ . -ldflags '-s -w'

.PHONY: test
test: ## run every test, on a real Temporal server and a real PostgreSQL
	@scripts/test

.PHONY: site
site: bin/starter ## write the documentation as web pages, into site/
	@bin/starter docs --write site

.PHONY: picture
picture: bin/starter bin/worker bin/devserver ## record the picture of the README from a real run
	@scripts/picture

.PHONY: lint
lint: ## check format, style, vet, workflow determinism and known vulnerabilities
	@scripts/lint

.PHONY: fmt
fmt: ## format all Go files
	@source scripts/tools && $$GOFUMPT -l -w .

.PHONY: reference
reference: ## rewrite docs/reference, llms.txt and the JSON Schema from the tables of the code
	@go run ./internal/test/docs/generate
	@go test ./starter -run TestGoldenCommands -count=1 -update
	@git --no-pager diff --stat -- docs schema llms.txt

.PHONY: golden
golden: ## rewrite expected files from what the code does now; review the diff
	@scripts/golden

.PHONY: test-nocache
test-nocache: bin/devserver ## test with workers that replay every workflow from its start, each time
	@TEST_NO_CACHE=1 go test -count=1 -timeout 1h ./workflows ./internal/test/e2e

.PHONY: chaos
chaos: bin/devserver ## kill workers, servers and connections under 60 runs each: any, those whose sources move, those that share a state, those that others answer (CHAOSFLAGS='-chaos.seed=1 -chaos.rounds=200')
	@cd internal/test/chaos && go test -count=1 -timeout 3h -run '^(TestChaos|TestMoving|TestMovingChildRuns|TestIncremental|TestAnswers)$$' -chaos.rounds=60 $(CHAOSFLAGS)

.PHONY: postgres
postgres: bin/devserver ## run chaos and some worlds of e2e with Temporal servers that keep their state in PostgreSQL (POSTGRESFLAGS='-chaos.rounds=20')
	@cd internal/test/chaos && TEST_TEMPORAL_STORE=postgres go test -count=1 -timeout 3h -run '^(TestChaos|TestMoving|TestIncremental|TestAnswers)$$' -chaos.rounds=10 $(POSTGRESFLAGS)
	@TEST_TEMPORAL_STORE=postgres go test -count=1 -timeout 1h ./internal/test/e2e -run '^(TestServerAndDatabaseDie|TestSecret.*|TestLoop.*|TestWait.*|TestConcurrency.*)$$'

.PHONY: moving
moving: bin/devserver ## kill workers, servers and PostgreSQL under 300 runs that share states, ten each (MOVINGFLAGS='-chaos.seed=1 -chaos.round=17')
	@cd internal/test/chaos && go test -count=1 -timeout 3h -run '^TestIncremental$$' -chaos.rounds=30 $(MOVINGFLAGS)

.PHONY: logins
logins: bin/devserver ## kill workers and servers at 300 points of exchanges of refresh tokens (LOGINSFLAGS='-logins.kills=1000 -logins.points=received')
	@cd internal/test/logins && go test -count=1 -timeout 6h -run '^TestManyKills$$' -logins.kills=300 $(LOGINSFLAGS)

.PHONY: rotations
rotations: bin/devserver ## change each kind of secret 50 times while 200 runs use them (ROTATIONSFLAGS='-rotations 200 -rotation.runs 1000')
	@go test ./internal/test/e2e -count=1 -timeout 4h -v -run '^TestSecretsRotate$$' -rotations 50 -rotation.runs 200 $(ROTATIONSFLAGS)

.PHONY: differential
differential: ## load 60 random tables by every way, and compare them in the databases (DIFFERENTIALFLAGS='-differential.seed=0')
	@go test -count=1 -timeout 2h ./internal/test/differential -differential.rounds=60 $(DIFFERENTIALFLAGS)

.PHONY: mutants
mutants: bin/devserver ## break the code in ways that tests have to notice, one at a time (MUTANTFLAGS='-only batch -chaos 60')
	@go run ./internal/test/mutants $(MUTANTFLAGS)

.PHONY: oracle
oracle: bin/devserver ## run 500 random playbooks against an oracle written from the specification, 60 more on a server, 150 that keep a state, and 40 sets of runs that share keys (ORACLEFLAGS='-oracle.seed=1')
	@go test ./internal/test/oracle -count=1 -timeout 2h -oracle.seed=0 -oracle.rounds=500 -oracle.server=60 -oracle.stories=150 -oracle.queues=40 $(ORACLEFLAGS)

.PHONY: lake-readers
lake-readers: ## read what sinks write to files with DuckDB, a package of npm, and compare types and values
	@mkdir -p .cache/duckdb && cp activities/file/testdata/duckdb/package*.json .cache/duckdb
	@cd .cache/duckdb && npm ci --silent --no-audit --no-fund
	@go test -count=1 ./activities/file -run '^TestDuckDB' -duckdb '$(CURDIR)/.cache/duckdb'

.PHONY: clocks
clocks: bin/devserver ## walk through every zone minute by minute, 2024 to 2036, for what schedules do where clocks move, and ask a server for more of them
	@go test ./interpreter/cron -count=1 -timeout 2h -cron.all
	@go test ./internal/program/timetable -count=1 -timeout 2h -timetable.all

.PHONY: mutation
mutation: ## turn operators and conditions around, one at a time, and run the tests that have to notice
	@scripts/mutation $(PACKAGES)

.PHONY: soak
soak: build ## run a mixed load for HOURS (4) while workers are restarted and builds rotated, and compare what processes need in the first hour and the last (SOAKFLAGS='-every 6s' on a busy machine)
	@go run ./internal/test/soak -hours $(or $(HOURS),4) $(SOAKFLAGS)

.PHONY: long
long: bin/devserver ## run loops of every size in every way, then 50,000 forged inputs, then a loop of 100,000 (hours on a small machine)
	@go test ./internal/test/e2e -count=1 -timeout 8h -run '^(TestLoopMatrix|TestRateLimitIsNotIdleAfterDeaths|TestProgressBeyondTheUpdatesOfAHistory|TestCanaries|TestPayloadsUpToTheCap|TestReprocessOfStoppedPages.*)$$' -soak
	@go test ./workflows -count=1 -timeout 1h -run '^TestForgedInputsEnd$$' -forgeries 50000 -forgery.seed 0
	@go test ./activities/file -count=1 -timeout 1h -run '^TestPathsOutliveKills$$' -soak
	@go test ./activities/postgres -count=1 -timeout 2h -run '^(TestReadersSeeOldOrNew|TestKillsAtEachStatement)$$' -soak
	@go test ./internal/test/e2e -count=1 -timeout 2h -run '^TestBackfillSoak$$' -backfill.partitions=10000 -backfill.kills=50
	@go test ./internal/test/chaos -count=1 -timeout 1h -run '^TestWatermarkIsBehindItsRows$$' -chaos.samples=10000
	@$(MAKE) bench BENCHFLAGS='-only scale'

.PHONY: record-histories
record-histories: bin/devserver ## record the histories of a release from real runs, which later builds replay (RELEASE=v0.2.0)
	@test -n "$(RELEASE)" || { echo 'record-histories: name the release: make record-histories RELEASE=v0.2.0' >&2; exit 2; }
	@go test ./internal/test/e2e -count=1 -timeout 60m -record-histories releases/$(RELEASE) -run "^($$(grep -rlE 'w\.recordAs\(' internal/test/e2e/*_test.go | xargs awk '/^func Test/ {sub(/^func /, ""); sub(/\(.*/, ""); name = $$0} /w\.recordAs\(/ {print name}' | sort -u | paste -sd'|'))$$"

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (30s), or those that FUZZ matches
	@scripts/fuzz

.PHONY: bench
bench: bin/devserver ## measure playbooks against workflows written by hand (BENCHFLAGS='-sizes 1000,10000')
	@REPRISE_DEVSERVER=bin/devserver go run ./internal/test/bench $(BENCHFLAGS)

.PHONY: bench-page
bench-page: bin/devserver ## print calls and milliseconds of the page of runs among many runs, all but 2,000 of them copies (RUNS=100000)
	@go test ./internal/program/ui -run '^TestMeasurePages$$' -count=1 -timeout 4h -measure $(or $(RUNS),10000)

.PHONY: peers
peers: build ## load the same rows with Reprise, a Go program, Temporal by hand, and dlt where it is installed, and a file with Reprise and psql (PEERSFLAGS='-passes 5')
	@REPRISE_DEVSERVER=bin/devserver go run ./internal/test/peers $(PEERSFLAGS)

.PHONY: peers-behaviour
peers-behaviour: bin/devserver ## play streams of low-code connectors against APIs made of their manifests, and compare requests and rows (MANIFESTS=folder LOWCODEFLAGS='-lowcode.seed=7 -lowcode.connectors=200')
	@go test ./internal/test/lowcode -count=1 -timeout 3h -v -run '^TestConnectors$$' -lowcode.manifests "$(abspath $(MANIFESTS))" $(LOWCODEFLAGS)

.PHONY: bench-against
bench-against: bin/devserver ## measure this tree against another commit, in turns on one server (REF=main BENCHFLAGS='-only "window 10,"')
	@scripts/bench-against "$(REF)" $(BENCHFLAGS)

.PHONY: compat
compat: bin/devserver ## run playbooks with starter, serve and workers of this tree and the last release, or another commit, on one queue, in all pairs and pinned (REF=main POINTS=4)
	@scripts/compat "$(REF)" $(POINTS)

.PHONY: images
images: ## write container images for amd64 and arm64 as OCI layouts, into dist/images/
	@cd deploy && go run ./images -source .. -to ../dist/images

.PHONY: test-images
test-images: ## build the image of the worker twice, compare the bytes, and run it by chroot
	@cd deploy && go test -count=1 -timeout 1h ./images

.PHONY: test-chart
test-chart: ## check what deploy/chart makes of values, with Helm as a library (it compiles Helm, minutes the first time; CHARTFLAGS=-update)
	@cd deploy/chart/test && go vet . && go test -count=1 -timeout 1h . $(CHARTFLAGS)

.PHONY: clean
clean: ## remove bin/ and the state of local servers
	@rm -rf bin dist .reprise coverage.out
