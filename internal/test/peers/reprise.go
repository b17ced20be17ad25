package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"reprise/internal/base/childproc"
)

// width is how many elements every peer loads concurrently.
const width = 10

// pagesBook is a playbook that reads all pages and writes each of them in the policy that requests the next one.
const pagesBook = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: %s}
workload: {api: "", elements: 0}
workflow:
  - step: fetch
    tool: http
    url: "{{ api }}/%srows"
    params: {page: 1}
%s    retry:
      - when: error.class in ['retryable', 'rate_limited']
        then: {max_attempts: 5}
      - when: response.has_more
        then:
          next_call: {params: {page: "{{ response.page + 1 }}"}}
          per_iteration:
            sink: {tool: postgres, auth: warehouse, table: loaded, mode: upsert, key: id, args: "{{ response.rows }}"}
`

const loopOfElements = `    loop: {collection: "{{ 0..(elements - 1) }}", element: n, mode: parallel, max_concurrency: %d, batch: auto, results: stats}
`

// fileBook is a playbook that transfers the file.
const fileBook = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: file}
workload: {api: "", elements: 0}
workflow:
  - step: load
    tool: transfer
    from: {tool: http, url: "{{ api }}/rows.csv.gz"}
    to: {tool: postgres, auth: warehouse, table: loaded}
`

// playbookOf returns the playbook of a job.
func playbookOf(j job) string {
	if j.isFile() {
		return fileBook
	}
	if j.elements == 0 {
		return fmt.Sprintf(pagesBook, "pages", "", "")
	}
	return fmt.Sprintf(pagesBook, "elements", "elements/{{ n }}/", fmt.Sprintf(loopOfElements, width))
}

// repriseWay runs a playbook, with a worker that is already polling.
type repriseWay struct{}

func (repriseWay) name() string { return "Reprise" }

func (repriseWay) prepare(ctx context.Context, w *world, j job) (*processes, error) {
	if err := os.WriteFile(filepath.Join(w.directory, "playbook.yaml"), []byte(playbookOf(j)), 0o600); err != nil {
		return nil, fmt.Errorf("write the playbook: %w", err)
	}
	if err := os.WriteFile(filepath.Join(w.directory, "egress.yaml"), []byte("private: allow\n"), 0o600); err != nil { // the API is on this machine
		return nil, fmt.Errorf("write the egress file: %w", err)
	}
	return startProcesses(ctx, func(ctx context.Context) (*childproc.Process, error) {
		p, err := startProcess(ctx, w.directory, []string{"REPRISE_AUTH_WAREHOUSE=" + w.database.URL}, absolutePath("bin/worker"), "--address", w.server.Address,
			"--namespace", w.server.Namespace, "--egress", "egress.yaml")
		if err == nil {
			err = waitForOutput(ctx, p, "polling")
		}
		return p, err
	})
}

func (repriseWay) load(ctx context.Context, w *world, j job, of *processes) error {
	return of.runCommand(ctx, w.directory, nil, absolutePath("bin/starter"), "run", "playbook.yaml", "--address", w.server.Address,
		"--namespace", w.server.Namespace, "--set", "api="+w.api.url, "--set", "elements="+strconv.Itoa(j.elements))
}

// absolutePath returns the absolute path of a program that make builds.
func absolutePath(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}
