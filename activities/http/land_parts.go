package http

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// bodyParts are the parts of a large body in the store of the workers, from which another worker continues. A store that fails is not used further: the attempt
// continues with the worker's disk alone, and a log line says so.
type bodyParts struct {
	store  tool.BodyStore // nil for none
	res    tool.Resources
	step   string
	prefix string // of the keys of a call
	body   storedBody
	stored int64 // bytes in parts
	found  bool  // something of the call is in the store
	buffer []byte
}

// storedBody describes a body whose parts are in the store; it is stored beside them.
type storedBody struct {
	// ID is in the keys of the parts, so that those of two bodies are never mixed.
	ID string `json:"id"`
	// Header is what the response said, and URL where it came from.
	Header http.Header `json:"header"`
	URL    string      `json:"url"`
	// Length is that of Content-Length, -1 for none, and Validator that of the landing.
	Length    int64  `json:"length"`
	Validator string `json:"validator,omitempty"`
	// Bytes is how many there are, once all parts are stored; 0 until then.
	Bytes int64 `json:"bytes,omitempty"`
}

// newBodyParts returns the parts of the call's body. Addresses whose query alone differs have one body, as signed ones have.
func newBodyParts(res tool.Resources, in interpreter.ToolInput) bodyParts {
	p := bodyParts{store: res.Bodies, res: res, step: in.Step}
	if in.OperationKey == "" {
		p.store = nil
	}
	address, _, _ := strings.Cut(expression.Text(in.Fields["url"].Data), "?")
	const length = 32 // 128 bits, in hexadecimal
	p.prefix = "bodies/" + expression.Digest("body", in.OperationKey, address, in.Fields["params"].Data)[:length] + "/"
	return p
}

func (p *bodyParts) keyOfHead() string { return p.prefix + "head" }

func (p *bodyParts) keyOfPart(number int64) string {
	return fmt.Sprintf("%s%s/%08d", p.prefix, p.body.ID, number)
}

// recallParts copies what another worker has stored of the body into the file. whole says that it was all.
func (l *landing) recallParts(ctx context.Context) (whole bool, err error) {
	p := &l.parts
	if p.store == nil {
		return false, nil
	}
	encoded, found, err := p.store.ReadObject(ctx, p.keyOfHead())
	if err != nil || !found {
		return false, p.giveUp(ctx, err)
	}
	var body storedBody
	if err := json.Unmarshal(encoded, &body); err != nil {
		return false, p.giveUp(ctx, err)
	}
	from, err := url.Parse(body.URL)
	if err != nil {
		return false, p.giveUp(ctx, err)
	}
	p.body, p.found = body, true
	for number := int64(1); ; number++ {
		part, found, err := p.store.ReadObject(ctx, p.keyOfPart(number))
		if err != nil {
			l.have = 0
			return false, p.giveUp(ctx, err)
		}
		if !found {
			break
		}
		if _, err := l.into.WriteAt(part, l.have); err != nil {
			return false, diskError(err)
		}
		l.have += int64(len(part))
	}
	whole = body.Bytes > 0 && l.have == body.Bytes || l.have == body.Length
	if !whole && (body.Validator == "" || l.have%p.store.PartBytes() != 0) {
		l.have, p.body = 0, storedBody{}
		return false, nil
	}
	p.stored = l.have
	l.answer = &http.Response{StatusCode: http.StatusOK, Header: body.Header, ContentLength: body.Length, Request: &http.Request{Method: http.MethodGet, URL: from}}
	l.length, l.validator, l.shown = body.Length, body.Validator, tool.ShownURL(from, tool.MaxShownURL)
	return whole, nil
}

// begin forgets the parts, as another body is downloaded now.
func (p *bodyParts) begin(l *landing) {
	header := http.Header{}
	for _, name := range []string{"Content-Type", "Content-Disposition", "Content-Encoding", "Etag", "Last-Modified", "Date"} {
		if values := l.answer.Header.Values(name); len(values) > 0 {
			header[name] = values
		}
	}
	p.stored = 0
	p.body = storedBody{ID: rand.Text(), Header: header, URL: redactURL(l.answer.Request.URL), Length: l.length, Validator: l.validator}
}

// storeParts stores the parts of which all bytes are there, and at the end the rest of a body that has others.
func (l *landing) storeParts(ctx context.Context, ended bool) error {
	p := &l.parts
	for p.store != nil {
		size := min(p.store.PartBytes(), l.have-p.stored)
		isRest := size < p.store.PartBytes()
		if isRest && (!ended || p.stored == 0 || size == 0) {
			break
		}
		if p.stored == 0 {
			if err := p.writeHead(ctx); err != nil {
				return p.giveUp(ctx, err)
			}
		}
		if p.buffer == nil {
			p.buffer = make([]byte, p.store.PartBytes())
		}
		part := p.buffer[:size]
		if _, err := io.ReadFull(io.NewSectionReader(l.into, p.stored, size), part); err != nil {
			return diskError(err)
		}
		if err := p.store.WriteObject(ctx, p.keyOfPart(p.stored/p.store.PartBytes()+1), part); err != nil {
			return p.giveUp(ctx, err)
		}
		p.stored += size
		tool.MarkProgress(ctx, nil)
	}
	if ended {
		p.buffer = nil
	}
	if ended && p.store != nil && p.stored > 0 && p.body.Bytes == 0 {
		p.body.Bytes = l.have
		if err := p.writeHead(ctx); err != nil {
			return p.giveUp(ctx, err)
		}
	}
	return nil
}

func (p *bodyParts) writeHead(ctx context.Context) error {
	p.found = true
	encoded, err := json.Marshal(p.body)
	if err != nil {
		return err
	}
	return p.store.WriteObject(ctx, p.keyOfHead(), encoded)
}

// giveUp uses the store no further after an error. It returns the error of ctx, if that has ended.
func (p *bodyParts) giveUp(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		p.store = nil
		p.res.Logger.Warn("the payload store failed, so a body is stored on the worker's disk alone; if the worker is lost, another one downloads it again", "step", p.step, "error", err)
	}
	return nil
}

// remove removes the parts of the call's body. What is left if the store is away is removed by the rules of the store.
func (p *bodyParts) remove(ctx context.Context) {
	if p.store == nil || !p.found {
		return
	}
	if err := p.store.RemoveObjects(ctx, p.prefix); err != nil {
		p.res.Logger.Warn("the parts of a body that is not needed any more are still in the payload store", "step", p.step, "prefix", p.prefix, "error", err)
	}
}
