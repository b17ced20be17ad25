package try

import (
	"fmt"
	"net/url"
	"unicode/utf8"

	"reprise/internal/program/recording"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// recordAnswer adds the response to an attempt, or to a sink, to the recording, unless its body cannot be recorded.
func (t *trial) recordAnswer(place string, outcome interpreter.Outcome, seen *exchange) {
	if t.Recording == nil {
		return
	}
	if seen != nil && (seen.size > maxSeen || !utf8.Valid(seen.content.Bytes())) {
		t.report.Notes = append(t.report.Notes, fmt.Sprintf("an answer of %s is not in the recording: it is larger than 1 MiB, or no text", place))
		return
	}
	entry := entryOf(outcome, seen)
	entry.Element = t.report.Element
	t.Recording.AddEntry(place, entry)
}

// entryOf returns the response as an entry of a recording. For HTTP it is the response as it arrived, before it was
// interpreted.
func entryOf(outcome interpreter.Outcome, seen *exchange) recording.Entry {
	failure := outcome.Err
	switch {
	case seen != nil && seen.status != 0:
		return recordedEntry(seen)
	case failure != nil && failure.Kind == interpreter.KindTimeout:
		return recording.Entry{Request: requestOf(seen), Error: recording.ErrorTimeout}
	case failure != nil:
		return recording.Entry{Request: requestOf(seen), Error: recording.ErrorConnection}
	}
	result := expression.Of(outcome.Data)
	return recording.Entry{Result: &result}
}

func recordedEntry(seen *exchange) recording.Entry {
	entry := recording.Entry{Request: requestOf(seen), Status: seen.status, Headers: map[string]string{}}
	for name, value := range seen.answered {
		switch name {
		case "date", "content-length", "connection", "transfer-encoding", "vary", "server": // of the wire
		default:
			entry.Headers[name] = value
		}
	}
	content := seen.content.Bytes()
	if len(content) == 0 {
		return entry
	}
	if value, err := expression.Decode(content); err == nil {
		body := expression.Of(seen.known.Value(value))
		entry.Body = &body
		return entry
	}
	text := seen.known.MaskText(string(content))
	entry.BodyText = &text
	return entry
}

// requestOf returns the request with its query split off; nil if none was seen.
func requestOf(seen *exchange) *recording.Request {
	if seen == nil {
		return nil
	}
	request := &recording.Request{Method: seen.method, URL: seen.url}
	if parsed, err := url.Parse(seen.url); err == nil && parsed.RawQuery != "" {
		query := parsed.Query()
		parsed.RawQuery = ""
		request.URL, request.Params = parsed.String(), map[string]any{}
		for name, values := range query {
			request.Params[name] = values[0]
			if len(values) > 1 {
				list := lists.Map(values, func(value string) any { return value })
				request.Params[name] = list
			}
		}
	}
	if body, err := expression.Decode([]byte(seen.body)); err == nil && seen.body != "" {
		value := expression.Of(body)
		request.Body = &value
	}
	return request
}
