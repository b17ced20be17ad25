package attempt

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// errorObject is err as the history stores it, with secrets masked.
func errorObject(err error, in interpreter.ToolInput, secrets *tool.Secrets) *interpreter.ErrorObject {
	var e *tool.Error
	if !errors.As(err, &e) {
		e = &tool.Error{Message: err.Error(), Err: err}
	}
	object := &interpreter.ErrorObject{
		Kind: cmp.Or(e.Kind, interpreter.KindTool), Class: cmp.Or(e.Class, interpreter.ClassRetryable),
		Message: maskedText(e.Error(), tool.MaxMessage, secrets),
		Status:  e.Status, Type: maskedText(e.Type, interpreter.MaxErrorType, secrets), Attempt: in.Attempt, Page: in.Page, Final: e.Final,
	}
	if e.RetryAfter != nil {
		seconds := e.RetryAfter.Seconds()
		object.RetryAfter = &seconds
	}
	if in.Sends != "" {
		markUnsent(object)
	}
	object.Headers = tool.ErrorHeaders(e.Headers, secrets)
	if e.Answer != nil {
		object.Answer = maskedAnswer(*e.Answer, secrets)
	}
	if requested, ok := errors.AsType[*tool.RequestError](err); ok {
		object.URL = maskedText(requested.URL, tool.MaxShownURL, secrets)
		object.Params = expression.Of(secrets.Value(tool.ShownParams(requested.Params)))
	}
	object.Body = expression.Of(maskedBody(e.Body, secrets))
	return object
}

// maskedAnswer returns the metadata of a failed answer as the history stores it.
func maskedAnswer(answer interpreter.ToolMeta, secrets *tool.Secrets) *interpreter.ToolMeta {
	masked := interpreter.ToolMeta{
		Status: answer.Status, Headers: tool.ErrorHeaders(answer.Headers, secrets), URL: secrets.MaskText(answer.URL),
	}
	for _, rel := range slices.Sorted(maps.Keys(answer.Links)) {
		if masked.Links == nil {
			masked.Links = map[string]string{}
		}
		masked.Links[secrets.MaskText(rel)] = secrets.MaskText(answer.Links[rel])
	}
	return &masked
}

// markUnsent turns the failure of a request into a failure of the webhook that sends it.
func markUnsent(object *interpreter.ErrorObject) {
	switch object.Kind {
	case interpreter.KindHTTP:
	case interpreter.KindConnection, interpreter.KindTimeout:
		object.Type = cmp.Or(object.Type, string(object.Kind))
	default:
		return
	}
	object.Kind = interpreter.KindWebhookFailure
}

// beyond is how many bytes of a text are masked in addition to those that are kept, since
// masking shortens the text.
const beyond = 4

// cutOff returns the beginning of a text. The masking that follows also recognizes a part of a secret at the end of
// a text.
func cutOff(text string, limit int) string { return text[:min(len(text), limit)] }

// maskedText returns at most limit bytes of a text, without secrets.
func maskedText(text string, limit int, secrets *tool.Secrets) string {
	return tool.CutText(secrets.MaskText(cutOff(text, beyond*limit)), limit)
}

// maskedBody returns a body as the history stores it, without secrets.
func maskedBody(body any, secrets *tool.Secrets) any {
	if body == nil {
		return nil
	}
	return cutBody(secrets.Value(cutBody(body, mostMasked, cutOff)), tool.MaxErrorBody, tool.CutEnds)
}

// mostMasked bounds how much of a body is searched for secrets before the body is cut. Within that bound its end is
// kept too; of a longer body the end is dropped, because masking could not recognize a part of a secret there.
const mostMasked = 256 << 10

// cutBody keeps a body of at most limit bytes unchanged. It turns a longer one into text and cuts that.
func cutBody(body any, limit int, cut func(string, int) string) any {
	if body == nil {
		return nil
	}
	canonical, err := expression.Canonical(body)
	if err != nil {
		return cut(fmt.Sprint(body), limit)
	}
	text, isText := canonical.(string)
	if !isText {
		encoded, err := expression.Encode(canonical)
		if err != nil {
			return cut(fmt.Sprint(body), limit)
		}
		if len(encoded) <= limit {
			return canonical
		}
		text = string(encoded)
	}
	return cut(text, limit)
}
