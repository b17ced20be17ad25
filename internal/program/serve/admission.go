package serve

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

// arrivalCost is the memory that an arriving body uses in addition to its bytes.
const arrivalCost = 16 << 10

// ofToken returns the sender name for requests with the token of an attempt.
func ofToken(workflowID string) string { return "token of " + workflowID }

// admission is what a body is admitted to.
type admission struct {
	arrivals *crowd
	slots    *senderSlots
	sender   string
	most     int64 // bytes
}

// admitRequest reads the body of a request and acquires a slot for it, which leave releases. A body without a slot
// only uses memory, and clients that stall have to make room for others: crowd decides which.
func (s *Server) admitRequest(w http.ResponseWriter, r *http.Request, of admission) (body []byte, leave func(), err error) {
	if encoding := valueOf(r.Header, "Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, nil, newProblem(http.StatusUnsupportedMediaType, "unsupported-media-type", "send the body uncompressed, without Content-Encoding")
	}
	if r.ContentLength > of.most {
		return nil, nil, tooLarge(of.most)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	control := http.NewResponseController(w)
	one := of.arrivals.addMember(of.sender, arrivalCost, func() {
		cancel()
		_ = control.SetReadDeadline(time.Now())
	})
	defer of.arrivals.releaseMember(one)
	arriving := &arriving{in: of.arrivals, member: one, control: control, limits: s.Limits, began: time.Now()}
	if body, err = arriving.readBody(http.MaxBytesReader(w, r.Body, of.most)); err != nil {
		return nil, nil, err
	}
	if r.ContentLength != 0 {
		recordArrival(r)
	}
	leave, err = of.slots.enterRequest(ctx, of.sender)
	return body, leave, err
}

// arriving is a body that is being read.
type arriving struct {
	in      *crowd
	member  *crowdMember
	control *http.ResponseController
	limits  Limits
	began   time.Time
	body    []byte
}

// readBody reads the whole body. A read fails when the deadline for the whole body is over, or when the body arrives
// more slowly than the minimal rate.
func (a *arriving) readBody(from io.Reader) ([]byte, error) {
	const atOnce = 64 << 10 // bytes of a read
	for grown := 0; ; {
		if !a.in.growMember(a.member, grown, a.setDeadline) {
			return nil, busyProblem()
		}
		a.body = slices.Grow(a.body, min(max(len(a.body), bytesAtLeast), atOnce))
		n, err := from.Read(a.body[len(a.body):min(cap(a.body), len(a.body)+atOnce)])
		a.body, grown = a.body[:len(a.body)+n], n
		if err == nil {
			continue
		}
		if errors.Is(err, io.EOF) {
			return a.body, a.liftDeadline()
		}
		return nil, a.readProblem(err)
	}
}

// bytesAtLeast is how many bytes of a body are read at once, if available.
const bytesAtLeast = 4 << 10

// setDeadline sets the deadline for the next bytes.
func (a *arriving) setDeadline() {
	until := a.began.Add(a.limits.Stall + time.Duration(float64(len(a.body))/float64(a.limits.Rate)*float64(time.Second)))
	if all := a.began.Add(a.limits.Body); all.Before(until) {
		until = all
	}
	_ = a.control.SetReadDeadline(until)
}

// liftDeadline removes the deadline: from now on the client waits for its response.
func (a *arriving) liftDeadline() error {
	if !a.in.growMember(a.member, 0, func() { _ = a.control.SetReadDeadline(time.Time{}) }) {
		return busyProblem()
	}
	return nil
}

// readProblem returns the response to a body that cannot be read.
func (a *arriving) readProblem(err error) error {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return tooLarge(large.Limit)
	case !a.in.growMember(a.member, 0, func() {}):
		return busyProblem()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return newProblem(http.StatusRequestTimeout, "request-timeout", "the body did not arrive in time")
	}
	return badRequest("the body cannot be read")
}
