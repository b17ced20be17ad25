package attempt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"reprise/activities/tool"
	"reprise/internal/base/seal"
	"reprise/internal/base/secrets"
	"reprise/interpreter"
	"reprise/interpreter/credential"
	"reprise/interpreter/expression"
)

// A secret result is small: each of its texts is looked for in all that the
// attempts report which use it.
const (
	// maxSecretBytes bounds a secret result, in bytes of JSON: each of its texts is searched
	// for in everything that an attempt which uses it reports.
	maxSecretBytes = 64 << 10
	// maxSecretTexts bounds the texts and numbers of a secret result for the same reason.
	maxSecretTexts = 64
)

// withSecrets returns an attempt that opens the secret results it uses before it begins,
// and seals its own before anybody else sees it. What is opened is masked from
// then on.
func (res Resources) withSecrets(run Func) Func {
	return func(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
		work := in.Secret
		if work == nil {
			return run(ctx, in)
		}
		in, err := res.revealSecrets(ctx, in)
		if err != nil {
			return interpreter.ToolResult{}, err
		}
		if !work.Seals {
			return run(ctx, in)
		}
		if res.SecretKeys == nil {
			return interpreter.ToolResult{}, tool.ConfigErrorf("step %q is secret: its result is encrypted, and this worker has no key for it; "+
				"set %s in the worker's environment (%s)", in.Step, seal.Variable, seal.Advice)
		}
		result, err := run(ctx, in)
		if err != nil {
			return interpreter.ToolResult{}, quietError(ctx, in, err)
		}
		return res.sealResult(ctx, in, result)
	}
}

// sealPlace returns the place that a result is sealed for, so that it cannot be moved to another run
// or step.
func sealPlace(run, step string) string { return strconv.Quote(run) + " " + strconv.Quote(step) }

// sealResult returns the result of a secret step as the run gets it: sealed, and of the rest of
// the answer only the status.
func (res Resources) sealResult(ctx context.Context, in interpreter.ToolInput, result interpreter.ToolResult) (interpreter.ToolResult, error) {
	encoded, err := expression.Encode(result.Data.Data)
	if err != nil {
		return interpreter.ToolResult{}, tool.Errorf("step %q: the secret result cannot be written as JSON", in.Step)
	}
	if len(encoded) > maxSecretBytes {
		return interpreter.ToolResult{}, tool.TooLargeErrorf("step %q: its secret result has %d bytes of JSON, the limit is %d; "+
			"fetch data that is not secret in a separate step", in.Step, len(encoded), maxSecretBytes)
	}
	texts := secretTexts(result.Data.Data)
	if len(texts) > maxSecretTexts {
		return interpreter.ToolResult{}, tool.TooLargeErrorf("step %q: its secret result has %d texts and numbers, the limit is %d; "+
			"fetch data that is not secret in a separate step", in.Step, len(texts), maxSecretTexts)
	}
	tool.ConcealTexts(ctx, res.Secrets, texts)
	text, err := res.SecretKeys.Seal(encoded, sealPlace(in.Secret.Run, in.Step))
	if err != nil {
		return interpreter.ToolResult{}, tool.ConfigErrorf("step %q: its secret result cannot be encrypted: %w", in.Step, err)
	}
	return interpreter.ToolResult{
		Data: interpreter.SealResult(text),
		Meta: interpreter.ToolMeta{Status: result.Meta.Status, RetryAfter: result.Meta.RetryAfter},
	}, nil
}

// revealSecrets opens the secret results that an attempt uses and returns the attempt with its
// deferred expressions evaluated.
func (res Resources) revealSecrets(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolInput, error) {
	work := in.Secret
	if len(work.Deferred) == 0 {
		return in, nil
	}
	opened := make(map[string]any, len(work.Sealed))
	var known []string
	for step, text := range work.Sealed {
		value, err := res.openSealed(in, step, text)
		if err != nil {
			return in, err
		}
		texts := secretTexts(value)
		tool.ConcealTexts(ctx, res.Secrets, texts)
		known = append(known, texts...)
		opened[step] = value
	}
	// Only answers of http are searched as they come.
	tool.SecretsOf(ctx).InspectAll(in.Tool)
	revealed, err := in.FillDeferred(opened, func(value any) { tool.SecretsOf(ctx).AddDerived(secretTexts(value), known) })
	if err != nil {
		return in, &tool.Error{
			Kind: interpreter.KindExpression, Class: interpreter.ClassFinal, Final: true,
			Message: fmt.Sprintf("step %q: %s", in.Step, withoutValues(err.Error())),
		}
	}
	return revealed, staysAtOrigin(revealed)
}

func (res Resources) openSealed(in interpreter.ToolInput, step, text string) (any, error) {
	encoded, err := res.SecretKeys.Open(text, sealPlace(in.Secret.Run, step))
	if err != nil {
		return nil, tool.ConfigErrorf("step %q: the secret result of step %q cannot be opened: %w; "+
			"%s of each worker must have the key; older keys follow after a comma", in.Step, step, err, seal.Variable)
	}
	value, err := expression.Decode(encoded)
	if err != nil {
		return nil, tool.ConfigErrorf("step %q: the secret result of step %q is not JSON", in.Step, step)
	}
	return value, nil
}

// secretTexts returns the texts and numbers in a value, each once, and in the
// keys of its maps that cannot be taken for words.
func secretTexts(v any) []string {
	var texts []string
	add := func(text string) {
		if text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case nil, bool:
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for key, item := range v {
				if credential.LooksSecret(key) {
					add(key)
				}
				walk(item)
			}
		default:
			add(expression.Text(v))
		}
	}
	walk(v)
	return texts
}

// staysAtOrigin refuses to send a secret to another host than the one where the call began:
// links to pages come from the server.
func staysAtOrigin(in interpreter.ToolInput) error {
	if in.Origin == "" {
		return nil
	}
	first, err := url.Parse(in.Origin)
	if err != nil {
		return tool.ConfigErrorf("step %q: the call started at a URL that cannot be parsed", in.Step)
	}
	target, err := url.Parse(strings.TrimSpace(expression.Text(in.Fields["url"].Data)))
	if err != nil || target.Host == "" || tool.SameHost(first, target) {
		return nil // http says what is wrong, or completes a path with the host of its connection
	}
	return tool.ConfigErrorf("step %q: the call started at %s, and the secret results that it uses are not sent to %s",
		in.Step, in.Origin, tool.Origin(target))
}

// valuesInText matches quoted values and numbers in messages.
var valuesInText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'[^']*'|[0-9][0-9.eE+-]*`)

// withoutValues returns a message about an expression over secrets, without the values that it
// quotes.
func withoutValues(message string) string {
	const most = 300
	return tool.CutText(valuesInText.ReplaceAllString(message, secrets.Stars), most)
}

// quietError returns the error of a secret step. The other side's message may contain the very
// secret that was requested, so it is left out.
func quietError(ctx context.Context, in interpreter.ToolInput, err error) error {
	var e *tool.Error
	switch {
	case tool.IsContextError(err) || ctx.Err() != nil:
		return err
	case !errors.As(err, &e):
		e = &tool.Error{}
	case e.Final, e.Kind == interpreter.KindConnection, e.Kind == interpreter.KindTimeout, e.Kind == interpreter.KindPayloadTooLarge:
		if e.Body == nil && len(e.Headers) == 0 && e.Answer == nil {
			return err
		}
		if e.Body == nil && len(e.Headers) == 0 {
			shown := *e
			shown.Answer = &interpreter.ToolMeta{Status: e.Answer.Status}
			return &shown
		}
	}
	message := fmt.Sprintf("step %q: the attempt failed with %s", in.Step, cmp.Or(e.Kind, interpreter.KindTool))
	if e.Status != 0 {
		message = fmt.Sprintf("step %q: HTTP %d", in.Step, e.Status)
	}
	if e.Type != "" {
		message += " " + e.Type
	}
	var answer *interpreter.ToolMeta
	if e.Answer != nil {
		answer = &interpreter.ToolMeta{Status: e.Answer.Status}
	}
	return &tool.Error{
		Kind: e.Kind, Class: e.Class, Type: e.Type, Status: e.Status, RetryAfter: e.RetryAfter, Final: e.Final, Answer: answer,
		Message: message + "; the response is not kept, because the step is secret",
	}
}
