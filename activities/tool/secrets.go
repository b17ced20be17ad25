package tool

import (
	"context"
	"slices"
	"sync"

	"reprise/internal/base/secrets"
	"reprise/interpreter"
	"reprise/interpreter/credential"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// Secrets are what one attempt must not print: the worker's secrets, and those of the attempt.
// Tools keep secrets out of their messages; this catches what drivers and servers repeat. Added
// secrets are forgotten after the attempt; use Resources.Secrets for those that other attempts
// may see.
type Secrets struct {
	*secrets.Masker

	mu   sync.Mutex
	sent []*secrets.ConnectionSecrets
	// echoed is set once a response has repeated one of the secrets that were sent.
	echoed bool
}

type secretsKey struct{}

// WithSecrets gives the attempt a set of its own.
func WithSecrets(ctx context.Context, worker *secrets.Masker) (context.Context, *Secrets) {
	own := &Secrets{Masker: worker.With()}
	return context.WithValue(ctx, secretsKey{}, own), own
}

// SecretsOf returns the attempt's secrets. Outside of an attempt it returns a set that masks
// nothing.
func SecretsOf(ctx context.Context) *Secrets {
	if own, ok := ctx.Value(secretsKey{}).(*Secrets); ok {
		return own
	}
	return &Secrets{Masker: &secrets.Masker{}}
}

// AddSent records that the attempt sends the secrets of a connection: its answers are
// looked through for them.
func (s *Secrets) AddSent(connection *secrets.ConnectionSecrets) {
	s.UseConnection(connection)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = lists.AddUnique(s.sent, connection)
}

// Inspect searches a successful response for the secrets that were sent, before it is decoded.
func (s *Secrets) Inspect(answer []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, connection := range s.sent {
		s.echoed = s.echoed || secrets.ResponseEchoes(connection, answer)
	}
}

// MaskResult returns the result with the secrets that were sent replaced by stars, or unchanged if
// it repeats none.
func (s *Secrets) MaskResult(result interpreter.ToolResult) interpreter.ToolResult {
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

func maskedMeta(connection *secrets.ConnectionSecrets, meta interpreter.ToolMeta) interpreter.ToolMeta {
	if secrets.ResponseEchoes(connection, meta.URL) {
		meta.URL = connection.MaskEchoes(meta.URL)
	}
	meta.Headers = maskedTexts(connection, meta.Headers)
	meta.Links = maskedTexts(connection, meta.Links)
	return meta
}

// maskedTexts returns the same map if there is nothing to mask.
func maskedTexts(connection *secrets.ConnectionSecrets, texts map[string]string) map[string]string {
	clean := true
	for name, value := range texts {
		clean = clean && !secrets.ResponseEchoes(connection, name) && !secrets.ResponseEchoes(connection, value)
	}
	if clean {
		return texts
	}
	masked := make(map[string]string, len(texts))
	for name, value := range texts {
		masked[connection.MaskEchoes(name)] = connection.MaskEchoes(value)
	}
	return masked
}

// ConcealTexts masks texts in everything that this attempt reports. Texts that look like secrets,
// and not like ordinary words, are also masked by the whole worker and in the attempt's
// responses.
func ConcealTexts(ctx context.Context, worker *secrets.Masker, texts []string) {
	own := SecretsOf(ctx)
	own.Add(texts...)
	for _, text := range texts {
		if credential.LooksSecret(text) {
			own.AddSent(worker.AddToken(text))
		}
	}
}

// AddDerived masks texts that an expression computed from secret results. known are the secrets
// themselves, which are masked already.
func (s *Secrets) AddDerived(texts, known []string) {
	for _, text := range texts {
		switch {
		case slices.Contains(known, text):
		case credential.LooksSecret(text):
			s.AddSent(s.AddToken(text))
		default:
			s.Add(text)
		}
	}
}

// InspectAll makes MaskResult search the results of tools that do not call Inspect.
func (s *Secrets) InspectAll(tool string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.echoed = s.echoed || tool != "http"
}
