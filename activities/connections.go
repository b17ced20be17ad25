package activities

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"reprise/internal/secrets"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// attemptSecrets are what one attempt must not print: those of the worker, and
// what comes with the attempt. Tools keep secrets out of their messages; this is
// the second fence, for what drivers and servers repeat. What is added to it is
// forgotten with the attempt; Resources.Secrets is for what other attempts may
// meet too.
type attemptSecrets struct {
	*secrets.Set

	mu   sync.Mutex
	sent []*secrets.Connection
	// echoed is set once an answer repeats one of them.
	echoed bool
}

type secretsKey struct{}

// withSecrets gives the attempt a set of its own.
func withSecrets(ctx context.Context, worker *secrets.Set) (context.Context, *attemptSecrets) {
	own := &attemptSecrets{Set: worker.With()}
	return context.WithValue(ctx, secretsKey{}, own), own
}

// secretsOf is the attempt's set; outside an attempt a set nobody reads.
func secretsOf(ctx context.Context) *attemptSecrets {
	if own, ok := ctx.Value(secretsKey{}).(*attemptSecrets); ok {
		return own
	}
	return &attemptSecrets{Set: &secrets.Set{}}
}

// sends notes that the attempt sends the secrets of a connection: its answers are
// looked through for them.
func (s *attemptSecrets) sends(connection *secrets.Connection) {
	s.Use(connection)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.sent, connection) {
		s.sent = append(s.sent, connection)
	}
}

// look looks through an answer that went well, before it is taken apart.
func (s *attemptSecrets) look(answer []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, connection := range s.sent {
		s.echoed = s.echoed || secrets.Echoes(connection, answer)
	}
}

// answer is a result without the secrets that it repeats of those that were sent.
// Where it has none it stays as it is.
func (s *attemptSecrets) answer(result interpreter.ToolResult) interpreter.ToolResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, connection := range s.sent {
		if s.echoed {
			result.Data = expression.Of(connection.Value(result.Data.Data))
		}
		result.Meta = maskedMeta(connection, result.Meta)
	}
	return result
}

func maskedMeta(connection *secrets.Connection, meta interpreter.ToolMeta) interpreter.ToolMeta {
	if secrets.Echoes(connection, meta.URL) {
		meta.URL = connection.Text(meta.URL)
	}
	meta.Headers = maskedTexts(connection, meta.Headers)
	meta.Links = maskedTexts(connection, meta.Links)
	return meta
}

// maskedTexts gives the map itself where there is nothing to mask.
func maskedTexts(connection *secrets.Connection, texts map[string]string) map[string]string {
	clean := true
	for name, value := range texts {
		clean = clean && !secrets.Echoes(connection, name) && !secrets.Echoes(connection, value)
	}
	if clean {
		return texts
	}
	masked := make(map[string]string, len(texts))
	for name, value := range texts {
		masked[connection.Text(name)] = connection.Text(value)
	}
	return masked
}

// redacted is a URL as errors may show it: scheme, host and path, without
// user, password, query and fragment.
func redacted(u *url.URL) string {
	short := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	if u.Opaque != "" {
		return u.Scheme + ":" + secrets.Stars
	}
	return short.String()
}

// cutText keeps at most limit bytes of text, whole runes, and makes it valid
// UTF-8, which JSON needs.
func cutText(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	const mark = " … (cut)"
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
