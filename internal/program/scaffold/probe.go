package scaffold

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"reprise/internal/base/secrets"
	"reprise/internal/base/terminal"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// Probe is the request of a curl command line that is sent once to learn how the API paginates. It contains the
// credentials, and is not written to any file.
type Probe struct {
	URL     string
	Params  map[string]any
	Headers map[string]any
	address string // without what may be secret
	known   *secrets.Masker
}

// Secrets returns the secrets of the request.
func (p *Probe) Secrets() *secrets.Masker { return p.known }

// String describes the request without its parameters and headers.
func (p *Probe) String() string { return "GET " + p.address }

// ProbeOf parses a curl command line into the request to send. lookup finds shell variables. The error says why the
// request cannot be sent, without its values.
func ProbeOf(line string, lookup func(name string) (string, bool)) (*Probe, error) {
	var missing []string
	d, err := readCurl(line, func(name string) string {
		value, is := lookup(name)
		if !is {
			missing = append(missing, name)
		}
		return value
	})
	switch {
	case len(missing) > 0:
		return nil, fmt.Errorf("the command uses $%s, which is not set", missing[0])
	case err != nil:
		return nil, err
	case d.Method != "GET" || d.Body != nil || d.Form != nil || d.Text != "":
		return nil, errors.New("only a GET without a body is sent, because other requests may change data")
	case inPath.MatchString(d.Path) || asColon.MatchString(d.Path):
		return nil, errors.New("the URL has a placeholder; write a value in its place")
	}
	return d.newProbe()
}

func (d *Description) newProbe() (*Probe, error) {
	parsed, err := url.Parse(d.Base)
	if err != nil {
		return nil, errors.New("the URL is not valid")
	}
	p := &Probe{Params: map[string]any{}, Headers: map[string]any{}}
	for _, pair := range d.Params {
		p.Params[pair.Name] = pair.Value
	}
	for _, header := range d.Headers {
		p.Headers[header.Name] = header.Value
	}
	if user := parsed.User; user != nil {
		password, _ := user.Password()
		p.Headers["authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password))
		parsed.User = nil
	}
	parsed.Path = d.Path
	p.URL = parsed.String()
	path := d.Path
	d.hideSecrets() // learns what is secret in it
	p.known, p.address = &d.known, d.known.MaskText(d.Base+path)
	return p, nil
}

// ApplyProbe derives the pagination from the response to a probe. The response's values are not written to files,
// only its names, with made-up values of the same kinds.
func (d *Description) ApplyProbe(p *Probe, body any, linked bool) {
	d.Answer = &Response{Body: d.known.Value(p.known.Value(hideStrings(similarValue(body, "", false)))), Linked: linked}
	d.probed = true
	segments := strings.Split(strings.Trim(d.Path, "/"), "/")
	if path, found := rowsOf(body, segments[len(segments)-1]); found {
		list, _ := valueAt(body, path).([]any)
		d.rows = len(list)
	}
}

var (
	likeTime = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}[T ]`)
	likeDate = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)
)

// similarValue returns a value in which values are replaced by others of the same kind. What leads to the next page
// is kept, except in rows.
func similarValue(value any, name string, inRows bool) any {
	switch of := value.(type) {
	case map[string]any:
		made := make(map[string]any, len(of))
		for _, key := range playbook.SortedKeys(of) {
			made[key] = similarValue(of[key], plainName(key), inRows)
		}
		return made
	case []any:
		made := make([]any, 0, min(len(of), testRows))
		for _, item := range of[:min(len(of), testRows)] {
			made = append(made, similarValue(item, name, true))
		}
		return made
	case string:
		switch {
		case !inRows && isPageReference(name, of), of == "":
			return of
		case likeDate.MatchString(of):
			return "2024-01-01"
		case likeTime.MatchString(of):
			return "2024-01-01T00:00:00Z"
		}
		return "text"
	case int:
		if !inRows {
			return of
		}
		return 1
	case bool, nil:
		return of
	}
	return 1.5
}

// isPageReference reports whether a text leads to the next page, or is the status of a job.
func isPageReference(name, text string) bool {
	return slices.Contains(urlMembers, name) || slices.Contains(markMembers, name) ||
		slices.Contains([]string{"href", "url", "link", "uri"}, name) && strings.Contains(text, "/") ||
		slices.Contains([]string{"status", "state"}, name) && slices.Contains(openStatuses, strings.ToLower(text))
}

// noteProbe notes what a probe could not decide: a response with rows, but without a sign of further pages. If it has
// as many rows as requested, there are probably more.
func (w *writer) noteProbe() {
	if !w.of.probed || !w.found.hasRows || w.paging.style != "" {
		return
	}
	full, more := w.isFull(), w.saysMore()
	if !full && !more {
		w.made.Notes = append(w.made.Notes, fmt.Sprintf("a guess: the response has %s and shows no further pages, so the playbook requests one page", terminal.Count(w.of.rows, "row")))
		return
	}
	w.of.Accepts = append(w.of.Accepts, Pair{"offset", nil})
	w.found = newFinder(w.of)
	w.paging = w.found.findPaging()
	says := "the response says there is more"
	if !more {
		says = fmt.Sprintf("the response has as many rows as requested, %d", w.of.rows)
	}
	w.noteGuess(says + ", but does not show how to request it; the playbook counts rows in offset")
}

// isFull reports whether the probe's response has as many rows as requested.
func (w *writer) isFull() bool {
	_, size := w.found.findParam(guessedSizes)
	return size != nil && w.of.rows > 0 && expression.Text(size) == strconv.Itoa(w.of.rows)
}

// saysMore reports whether the probe's response says that there are more rows.
func (w *writer) saysMore() bool {
	_, more := w.found.findMember(moreMembers, func(m answerMember) bool { return m.value == true })
	_, total := w.found.findMember(totalMembers, func(m answerMember) bool { n, isNumber := m.value.(int); return isNumber && n > w.of.rows })
	return more || total
}
