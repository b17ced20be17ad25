package playtest

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/workflows/protocol"
)

// observations records what tests compare, during the run. It is safe for concurrent use.
type observations struct {
	mu       sync.Mutex
	prefixes map[string]string          // steps above a workflow, by its ID
	elements map[string]map[int]any     // of iterations, by the ID of their workflow and their index
	outer    map[string][]iteration     // whose runs a workflow is of, by its ID
	requests map[string][]request       // by place
	paused   map[string][]wait          // by place
	written  map[string][]write         // by place
	keys     map[string]bool            // operation keys of what was written once
	verdicts map[string][]verdict       // by place
	policies map[*playbook.Policy]bool  // that matched
	targets  map[*playbook.Target]bool  // that were followed
	routes   map[string][]string        // steps that a step of the playbook itself led to, by its name
	visited  map[string]map[string]bool // steps, by the hash of their playbook
	happened runEvents
}

type request struct {
	who  caller
	at   time.Duration
	what map[string]any
}

type wait struct {
	who   caller
	delay time.Duration
}

type write struct {
	who  caller
	rows []any
}

// verdict is what policies decided about an outcome.
type verdict struct {
	index *int
	seen  call.Observation
}

func newSeen() *observations {
	return &observations{
		prefixes: map[string]string{}, elements: map[string]map[int]any{}, outer: map[string][]iteration{}, requests: map[string][]request{}, paused: map[string][]wait{},
		written: map[string][]write{}, keys: map[string]bool{}, verdicts: map[string][]verdict{}, policies: map[*playbook.Policy]bool{},
		targets: map[*playbook.Target]bool{}, routes: map[string][]string{}, visited: map[string]map[string]bool{},
	}
}

// enterWorkflow records a starting workflow: its place in the tree of loops and runs, and the elements of its calls.
func (s *observations) enterWorkflow(workflowID, parentID string, args []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	prefix := ""
	s.outer[workflowID] = s.outer[parentID]
	switch in := args[0].(type) {
	case protocol.Input:
		if in.Called != nil {
			prefix = prefixOf(in.Called.Parents)
			s.outer[workflowID] = nil
			if len(in.Called.Parents) > 0 { // who waits for it
				s.outer[workflowID] = append(slices.Clone(s.outer[parentID]), s.iterationOf(parentID, in.Called.Index))
			}
		}
	case protocol.LoopInput:
		prefix = prefixOf(parentsOf(in.Task))
	case protocol.CallsInput:
		prefix = prefixOf(parentsOf(in.Task))
		for _, snapshot := range in.Calls {
			if snapshot.Index != nil {
				s.learnElement(workflowID, *snapshot.Index, snapshot.Element.Data)
			}
		}
	}
	s.prefixes[workflowID] = prefix
}

func (s *observations) learnElement(workflowID string, index int, element any) {
	if s.elements[workflowID] == nil {
		s.elements[workflowID] = map[int]any{}
	}
	s.elements[workflowID][index] = element
}

func parentsOf(task protocol.Task) []interpreter.Parent {
	if task.Nesting == nil {
		return nil
	}
	return task.Nesting.Parents
}

func prefixOf(parents []interpreter.Parent) string {
	var b strings.Builder
	for _, parent := range parents {
		b.WriteString(parent.Step + "/")
	}
	return b.String()
}

func (s *observations) knowsWorkflow(workflowID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.prefixes[workflowID]
	return known
}

func (s *observations) loopPlace(workflowID string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prefixes[workflowID]
}

// iterationAt returns the iteration that a workflow runs at an index, and the iterations that contain the run itself.
func (s *observations) iterationAt(workflowID string, index *int) (of iteration, outer []iteration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.iterationOf(workflowID, index), s.outer[workflowID]
}

func (s *observations) iterationOf(workflowID string, index *int) iteration {
	of := iteration{index: index}
	if index != nil {
		of.element = s.elements[workflowID][*index]
	}
	return of
}

// addRequest notes a request.
func (s *observations) addRequest(who caller, at time.Duration, _ string, what map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[who.place] = append(s.requests[who.place], request{who, at, what})
}

// addWait records a wait before an attempt. Waits for a turn under a rate limit are ignored, because they depend on
// which attempt comes first.
func (s *observations) addWait(workflowID string, mark interpreter.TimerMark, delay time.Duration) {
	if !slices.Contains(interpreter.WaitReasons(), mark.Reason) || mark.Reason == interpreter.ReasonTurn || delay <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	place := s.prefixes[workflowID] + mark.Call
	who := caller{place: place, iteration: s.iterationOf(workflowID, mark.Index), outer: s.outer[workflowID]}
	s.paused[place] = append(s.paused[place], wait{who, delay})
}

// addRows records what a sink wrote. A write that tables and files recognize as repeated is recorded once.
func (s *observations) addRows(who caller, in interpreter.ToolInput, rows []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	once := in.Tool == "sqlite" || in.Tool == "postgres" || in.Tool == "file"
	if once && s.keys[in.OperationKey] {
		return
	}
	s.keys[in.OperationKey] = true
	s.written[who.place] = append(s.written[who.place], write{who, rows})
}

// addDecision records what policies decided about an outcome.
func (s *observations) addDecision(prefix string, seen call.Observation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !seen.Decided {
		return
	}
	for _, policy := range seen.Policies {
		s.policies[policy] = true
	}
	place := cmp.Or(seen.Place, seen.Step)
	s.verdicts[prefix+place] = append(s.verdicts[prefix+place], verdict{seen.Index, seen})
}

// addRoute records that a step has ended, and where its branch continues.
func (s *observations) addRoute(book *playbook.Playbook, step *playbook.Step, arrivals []interpreter.Arrival, own bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, arrival := range arrivals {
		if own {
			s.routes[step.Name] = append(s.routes[step.Name], arrival.Step)
		}
	}
	steps := s.visited[book.Hash]
	if steps == nil {
		steps = map[string]bool{}
		s.visited[book.Hash] = steps
	}
	steps[step.Name] = true
	for _, arrival := range arrivals {
		steps[arrival.Step] = true
		for _, route := range step.Next {
			for _, target := range route.Targets {
				if target.Step == arrival.Step {
					s.targets[target] = true
				}
			}
		}
	}
}

// byIteration sorts what concurrent iterations did into the order of their collections.
func byIteration[T any](all []T, who func(T) caller) []T {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b T) int { return slices.Compare(loopPositions(who(a)), loopPositions(who(b))) })
	return sorted
}

// loopPositions returns the positions of a call in the loops around it.
func loopPositions(who caller) []int {
	all := lists.Map(who.outer, func(outer iteration) int { return positionOf(outer.index) })
	return append(all, positionOf(who.index))
}

func positionOf(index *int) int {
	if index == nil {
		return -1
	}
	return *index
}
