package main

import "strconv"

// kind is a playbook of the load.
type kind struct {
	name string
	// rows is how many rows a run writes, numbered from 1 unless numbers lists them.
	rows    int
	numbers []int
	// requests are the elements that a run requests, with how often if it is more than once.
	requests map[string]int
	steps    string
	// asks says that a run waits for a person.
	asks bool
}

// written returns the numbers of the rows that a run writes.
func (k kind) written() []int {
	if k.numbers != nil {
		return k.numbers
	}
	return upTo(k.rows)
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i + 1
	}
	return all
}

func texts(numbers []int) []string {
	all := make([]string, len(numbers))
	for i, n := range numbers {
		all[i] = strconv.Itoa(n)
	}
	return all
}

// each has every name once.
func each(names ...string) map[string]int {
	all := map[string]int{}
	for _, name := range names {
		all[name] = 1
	}
	return all
}

// kinds returns the playbooks of the load, which take turns.
func kinds() []kind {
	children := []int{11, 12, 13, 21, 22, 23, 31, 32, 33, 41, 42, 43}
	return []kind{
		{name: "loops", rows: 20, requests: each(texts(upTo(20))...), steps: loopSteps},
		{name: "children", numbers: children, requests: each(texts(children)...), steps: childrenSteps},
		{name: "pages", rows: pagesOfRun * rowsOfPage, requests: each(texts(upTo(pagesOfRun))...), steps: pagesSteps},
		{name: "retries", rows: 1, requests: map[string]int{"1": failuresOfRun + 1}, steps: retriesSteps},
		{name: "approvals", rows: 1, steps: approvalSteps, asks: true},
		{name: "callbacks", rows: 1, requests: each("import"), steps: callbackSteps},
		{name: "limits", rows: 10, requests: each(texts(upTo(10))...), steps: limitSteps},
		{name: "queues", rows: 1, requests: each("enter", "leave"), steps: queueSteps},
	}
}

// bookOf returns a whole playbook.
func bookOf(name, rest string) string {
	return "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: " + name + "}\nworkload: {api: \"\", number: 0, parent: 0}\n" + rest
}

// changesBook is the playbook that a schedule starts, and that reads on from where it was.
const changesBook = "changes"

const loopSteps = `workflow:
  - step: all
    tool: http
    url: "{{ api }}/item"
    params: {run: "{{ number }}", n: "{{ n }}"}
    loop:
      in: "{{ 1..20 }}"
      iterator: n
      mode: parallel
      max_concurrency: 4
      batch: 5
      sink: {tool: postgres, auth: warehouse, table: loaded, args: {kind: loops, run: "{{ number }}", n: "{{ n }}"}}
`

const childrenSteps = `workflow:
  - step: all
    tool: playbook
    path: child.yaml
    loop: {in: "{{ 1..4 }}", iterator: tens, mode: parallel}
    workload: {api: "{{ api }}", number: "{{ number }}", parent: "{{ tens }}"}
`

const childSteps = `workflow:
  - step: all
    tool: http
    url: "{{ api }}/item"
    params: {run: "{{ number }}", n: "{{ parent * 10 + n }}"}
    loop:
      in: "{{ 1..3 }}"
      iterator: n
      sink: {tool: postgres, auth: warehouse, table: loaded, args: {kind: children, run: "{{ number }}", n: "{{ parent * 10 + n }}"}}
`

const pagesSteps = `workflow:
  - step: all
    tool: http
    url: "{{ api }}/page"
    params: {run: "{{ number }}", page: 1}
    retry:
      - when: response.more
        then:
          max_attempts: 100
          delay: 0.1
          next_call: {params: {page: "{{ response.page + 1 }}"}}
          per_iteration: {sink: {tool: postgres, auth: warehouse, table: loaded, args: "{{ response.rows }}"}}
`

const retriesSteps = `workflow:
  - step: one
    tool: http
    url: "{{ api }}/flaky"
    params: {run: "{{ number }}"}
    retry: [{when: error.status == 503, then: {max_attempts: 9, delay: 4, jitter: none}}]
    sink: {tool: postgres, auth: warehouse, table: loaded, args: {kind: retries, run: "{{ number }}", n: "{{ result.n }}"}}
`

const approvalSteps = `workflow:
  - step: ask
    tool: approval
    message: "Load {{ number }}?"
    timeout: 1h
    sink: {tool: postgres, auth: warehouse, table: loaded, args: {kind: approvals, run: "{{ number }}", n: 1}}
`

const callbackSteps = `workflow:
  - step: load
    tool: webhook
    timeout: 10m
    on_start:
      url: "{{ api }}/import"
      body: {run: "{{ number }}", done: "{{ callback.complete }}"}
    sink: {tool: postgres, auth: warehouse, table: loaded, args: {kind: callbacks, run: "{{ number }}", n: "{{ result.n }}"}}
`

const limitSteps = `workflow:
  - step: all
    tool: http
    url: "{{ api }}/item"
    params: {run: "{{ number }}", n: "{{ n }}"}
    rate_limit: {requests: 5, per: 1s, key: soak}
    loop:
      in: "{{ 1..10 }}"
      iterator: n
      mode: parallel
      sink: {tool: postgres, auth: warehouse, table: loaded, args: {kind: limits, run: "{{ number }}", n: "{{ n }}"}}
`

// keyLimit is how many runs may have the concurrency key.
const keyLimit = 2

const queueSteps = `concurrency: {key: soak, limit: 2}
workflow:
  - step: enter
    tool: http
    url: "{{ api }}/enter"
    params: {run: "{{ number }}"}
    sink: {tool: postgres, auth: warehouse, table: loaded, args: {kind: queues, run: "{{ number }}", n: "{{ result.n }}"}}
    next: leave
  - step: leave
    tool: http
    url: "{{ api }}/leave"
    params: {run: "{{ number }}"}
`

const changesSteps = `workflow:
  - step: all
    tool: http
    url: "{{ api }}/changes"
    params: {since: "{{ incremental.value }}"}
    incremental: {cursor_path: at, initial_value: "2024-01-01T00:00:00Z", lag: 5s, row_order: asc}
    retry:
      - when: response.more
        then:
          max_attempts: 100000
          next_call: {params: {after: "{{ response.last }}"}}
          collect: {path: rows}
          per_iteration: {sink: {tool: postgres, auth: warehouse, table: changes, mode: insert, key: id}}
`
