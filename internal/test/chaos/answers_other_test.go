package chaos_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/internal/base/answers"
	"reprise/internal/base/callback"
	"reprise/internal/base/seal"
	"reprise/internal/observe/runs"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// plan is what the other system makes of an attempt.
type plan struct {
	status   int             // of its answer to on_start
	during   bool            // it answers the attempt before it answers on_start
	reports  []time.Duration // progress, after so long each
	after    time.Duration   // until the answer
	verb     interpreter.AnswerVerb
	final    bool // of a failure
	ballast  int
	again    int                    // how often it says the same again
	rival    interpreter.AnswerVerb // of what it says too at the same time, "" for nothing
	late     time.Duration          // and something else so long after, 0 for nothing
	wrong    bool                   // it tries tokens that are none
	direct   bool                   // by the update, else by HTTP
	nameless bool                   // the update has no attempt key
}

// drawPlans are those of an item's attempts. In visits no item is to fail.
func drawPlans(random *rand.Rand, visits bool) []plan {
	wait := func(most int) time.Duration { return time.Duration(random.IntN(most)) * time.Millisecond }
	chance := func(n int) bool { return random.IntN(n) == 0 }
	draw := func() plan {
		p := plan{
			status: http.StatusAccepted, during: chance(5), after: wait(1500), verb: interpreter.AnswerComplete,
			wrong: chance(6), direct: chance(3), nameless: chance(2),
		}
		if chance(4) {
			p.rival = interpreter.AnswerFail
		}
		if chance(3) {
			p.again = 1 + random.IntN(2)
		}
		if chance(4) {
			p.late = 100*time.Millisecond + wait(4000)
		}
		if chance(4) {
			for range 1 + random.IntN(3) {
				p.reports = append(p.reports, wait(4000))
			}
		}
		if visits {
			p.after, p.reports, p.ballast = wait(300), nil, 90_000
			if p.rival != "" {
				p.rival = interpreter.AnswerComplete
			}
		}
		return p
	}
	var plans []plan
	for more := 4; len(plans) < 2 && chance(more) || visits && len(plans) == 0 && chance(6); more-- {
		p := draw()
		switch random.IntN(5) {
		case 0:
			p.status = http.StatusServiceUnavailable
			p.verb = map[bool]interpreter.AnswerVerb{true: interpreter.AnswerFail}[p.during]
		case 1, 2:
			p.verb = "" // its time is over
		default:
			p.verb = interpreter.AnswerFail
		}
		plans = append(plans, p)
		if more < 3 {
			break
		}
	}
	last := draw()
	if !visits && chance(7) {
		last.verb, last.final = interpreter.AnswerFail, chance(2)
	}
	return append(plans, last)
}

// begun is an attempt of which on_start has come.
type begun struct {
	item, attempt int
	arrived       time.Time // the first time
	times         int
	status        int
	token         string
}

// Outcomes of an answer, as its sender has got them.
const (
	wasTaken   = "taken"
	wasLeft    = "left" // for a worker that comes
	wasRefused = "refused"
	wasLost    = "lost" // nobody has said
)

// saying is an answer that was given.
type saying struct {
	item, attempt int
	n             int // tells it from all others, but for the same again
	verb          interpreter.AnswerVerb
	final         bool
	began, ended  time.Time
	became        string
	how           string
}

// otherSystem is asked by attempts, and answers them.
type otherSystem struct {
	plans  [][]plan
	most   int // attempts of an item
	url    string
	serve  string
	keys   *seal.Keys
	reader *runs.Reader
	ctx    context.Context
	busy   sync.WaitGroup

	mu      sync.Mutex
	begun   map[[2]int]*begun
	order   []*begun
	keyed   map[string]int // item by operation key
	said    []*saying
	count   int
	n       int
	halts   []halt
	trouble []string

	refuses  map[int]bool // items whose answers it does not confirm until it is repaired
	repaired bool
	again    map[int]map[string]bool // what it was asked since, by item and by what tells attempts apart
	answers  map[int]map[int]bool    // what it was to confirm, by item
	confirms map[int]int             // and has, before it was repaired and since
}

func newOtherSystem(t *testing.T, plans [][]plan, most int, serve string, keys *seal.Keys, reader *runs.Reader) *otherSystem {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	o := &otherSystem{
		plans: plans, most: most, serve: serve, keys: keys, reader: reader, ctx: ctx, begun: map[[2]int]*begun{}, keyed: map[string]int{},
		refuses: map[int]bool{}, again: map[int]map[string]bool{}, answers: map[int]map[int]bool{}, confirms: map[int]int{},
	}
	server := httptest.NewServer(o)
	o.url = server.URL
	t.Cleanup(func() {
		cancel()
		server.CloseClientConnections()
		server.Close()
		testenv.Wait(t, o.busy.Wait, "the end of what the other system sends")
	})
	return o
}

func (o *otherSystem) complain(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.trouble = append(o.trouble, fmt.Sprintf(format, args...))
}

// ServeHTTP takes on_start, and gives back what it is asked to confirm.
func (o *otherSystem) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/confirm" {
		o.confirm(w, text)
		return
	}
	var body struct{ Token, Key string }
	_ = json.Unmarshal(text, &body)
	item, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/start/"))
	operation, number, _ := strings.Cut(body.Key, ":")
	if o.isRepaired() {
		o.startAgain(w, item, operation, number, body.Token)
		return
	}
	attempt, _ := strconv.Atoi(number)
	if r.Header.Get("Idempotency-Key") != body.Key || attempt < 1 || attempt > o.most || item >= len(o.plans) {
		o.complain("%s, attempt %q, sent as %q: no such attempt is due", r.URL, body.Key, r.Header.Get("Idempotency-Key"))
		w.WriteHeader(http.StatusTeapot)
		return
	}
	came, first := o.begins(operation, item, attempt, body.Token)
	p := o.planOf(item, attempt)
	if first {
		told := make(chan struct{})
		o.busy.Go(func() { o.follow(p, came, told) })
		if p.during {
			select {
			case <-told:
			case <-r.Context().Done():
			}
		}
	}
	w.WriteHeader(p.status)
	_, _ = w.Write([]byte("{}"))
}

// planOf is that of an attempt; one that is beyond those of its item is completed.
func (o *otherSystem) planOf(item, attempt int) plan {
	if plans := o.plans[item]; attempt <= len(plans) {
		return plans[attempt-1]
	}
	return plan{status: http.StatusAccepted, verb: interpreter.AnswerComplete}
}

func (o *otherSystem) begins(operation string, item, attempt int, token string) (came *begun, first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count++
	if known, found := o.keyed[operation]; found && known != item {
		o.trouble = append(o.trouble, fmt.Sprintf("the operation key of items %d and %d is the same", known, item))
	}
	o.keyed[operation] = item
	place := [2]int{item, attempt}
	if came = o.begun[place]; came != nil {
		came.times++
		return came, false
	}
	came = &begun{item: item, attempt: attempt, arrived: time.Now(), times: 1, token: token, status: o.planOf(item, attempt).status}
	o.begun[place] = came
	o.order = append(o.order, came)
	return came, true
}

// follow does what is planned for an attempt. told is closed when on_start may be
// answered.
func (o *otherSystem) follow(p plan, to *begun, told chan struct{}) {
	if !p.during {
		close(told)
	}
	if p.wrong {
		o.tryWrong(to)
	}
	if !p.during {
		for i, after := range p.reports {
			o.rest(after)
			o.say(p, &saying{item: to.item, attempt: to.attempt, n: i + 1, verb: interpreter.AnswerProgress}, to, 1)
		}
	}
	o.rest(p.after)
	if p.verb != "" {
		n := o.number()
		var others sync.WaitGroup
		if p.rival != "" {
			others.Go(func() {
				o.say(plan{direct: !p.direct}, &saying{item: to.item, attempt: to.attempt, n: o.number(), verb: p.rival}, to, 1)
			})
		}
		for range 1 + p.again {
			o.say(p, &saying{item: to.item, attempt: to.attempt, n: n, verb: p.verb, final: p.final}, to, 10)
		}
		others.Wait()
	}
	if p.during {
		close(told)
	}
	if p.late > 0 {
		o.rest(p.late)
		o.say(plan{direct: p.direct}, &saying{item: to.item, attempt: to.attempt, n: o.number(), verb: interpreter.AnswerComplete}, to, 1)
	}
}

func (o *otherSystem) rest(d time.Duration) {
	select {
	case <-time.After(d):
	case <-o.ctx.Done():
	}
}

func (o *otherSystem) number() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n++
	return o.n
}

// say gives an answer, again while nobody says what became of it, up to tries
// times; each is a saying of its own.
func (o *otherSystem) say(p plan, what *saying, to *begun, tries int) {
	for range tries {
		one := *what
		one.began = time.Now()
		if p.direct {
			one.became, one.how = o.sayDirectly(p, one, to.token)
		} else {
			one.became, one.how = o.sayHTTP(p, one, to.token)
		}
		one.ended = time.Now()
		o.mu.Lock()
		o.said = append(o.said, &one)
		o.mu.Unlock()
		if one.became != wasLost || o.ctx.Err() != nil {
			return
		}
		o.rest(500 * time.Millisecond)
	}
}

func (s saying) message() string {
	return fmt.Sprintf("item %d attempt %d says %d", s.item, s.attempt, s.n)
}

func (s saying) result(ballast int) map[string]any {
	made := map[string]any{"item": s.item, "attempt": s.attempt, "n": s.n}
	if ballast > 0 {
		made["ballast"] = strings.Repeat("x", ballast)
	}
	return made
}

func (o *otherSystem) sayHTTP(p plan, s saying, token string) (became, how string) {
	body := map[string]any{}
	switch s.verb {
	case interpreter.AnswerComplete:
		body["result"] = s.result(p.ballast)
	case interpreter.AnswerFail:
		body["message"] = s.message()
		if s.final {
			body["retryable"] = false
		}
	default:
		body["done"] = s.n
	}
	status, taken, err := o.post(token, string(s.verb), body)
	switch {
	case err != nil:
		return wasLost, err.Error()
	case status == http.StatusOK, status == http.StatusAccepted && taken:
		return wasTaken, fmt.Sprint(status)
	case status == http.StatusAccepted:
		return wasLeft, fmt.Sprint(status)
	case status == http.StatusConflict:
		return wasRefused, fmt.Sprint(status)
	case status < http.StatusInternalServerError && status != http.StatusTooManyRequests:
		o.complain("%s of item %d, attempt %d was answered %d", s.verb, s.item, s.attempt, status)
	}
	return wasLost, fmt.Sprint(status)
}

func (o *otherSystem) post(token, verb string, body any) (status int, taken bool, err error) {
	text, _ := json.Marshal(body)
	request, err := http.NewRequestWithContext(o.ctx, http.MethodPost, o.serve+callback.Path+token+"/"+verb, bytes.NewReader(text))
	if err != nil {
		return 0, false, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, false, err
	}
	defer func() { _ = response.Body.Close() }()
	var said struct {
		Taken bool `json:"accepted"`
	}
	err = json.NewDecoder(response.Body).Decode(&said)
	return response.StatusCode, said.Taken, err
}

func (o *otherSystem) sayDirectly(p plan, s saying, token string) (became, how string) {
	address, err := callback.OpenToken(o.keys, token)
	if err != nil {
		o.complain("the token of item %d, attempt %d cannot be opened", s.item, s.attempt)
		return wasLost, err.Error()
	}
	if p.nameless {
		address.To.Key = ""
	}
	given := interpreter.Answer{AnswerTo: address.To, Verb: s.verb}
	switch s.verb {
	case interpreter.AnswerComplete:
		given.Result = expression.Of(any(s.result(p.ballast)))
	case interpreter.AnswerFail:
		given.Message = s.message()
		if s.final {
			given.Retryable = new(bool)
		}
	default:
		given.Done = int64(s.n)
	}
	taken, err := o.reader.SendAnswer(o.ctx, address.Workflow, given)
	var refused *interpreter.AnswerError
	switch {
	case err == nil && taken.Attempt != s.attempt:
		o.complain("the answer to item %d, attempt %d was taken as one to attempt %d", s.item, s.attempt, taken.Attempt)
		return wasTaken, "by update"
	case err == nil:
		return wasTaken, "by update"
	case errors.As(err, &refused), errors.Is(err, answers.ErrClosed):
		return wasRefused, err.Error()
	}
	return wasLost, err.Error()
}

// tryWrong answers with tokens that are none.
func (o *otherSystem) tryWrong(to *begun) {
	for _, token := range []string{to.token[:len(to.token)/2], to.token + "x", "x" + to.token[1:], "none"} {
		status, _, err := o.post(token, "complete", map[string]any{"result": "stolen"})
		if err == nil && status != http.StatusNotFound && status < http.StatusInternalServerError {
			o.complain("a wrong token was answered %d", status)
		}
	}
}

func (o *otherSystem) halted(h halt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.halts = append(o.halts, h)
}

// wait waits until nobody says anything any more.
func (o *otherSystem) wait(t *testing.T) {
	t.Helper()
	testenv.Wait(t, o.busy.Wait, "the end of what the other system sends")
}

// moves counts what has come and was said.
func (o *otherSystem) moves() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count + len(o.said)
}

func (o *otherSystem) arrivals() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count
}
