package http

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"reprise/activities/tool"
	"reprise/internal/base/connection"
	"reprise/interpreter"
	"reprise/interpreter/call/request"
	"reprise/interpreter/expression"
	"reprise/interpreter/ratelimit"
)

const (
	// typeLogin is the type of errors of a login that was answered.
	typeLogin = "login"
	// refusalPause is how long a login that was refused is not sent again: servers lock accounts after a few wrong passwords.
	refusalPause = 5 * time.Minute
	// logoutTimeout is how long all logouts of a worker may take together.
	logoutTimeout = 5 * time.Second
	// maxLoginAnswer bounds the body of a login's answer, and maxRefusal that of one that refused_when reads, in bytes.
	maxLoginAnswer, maxRefusal = 1 << 20, 256 << 10
)

// sessionLogin fetches tokens by the login that a connection describes. Nothing of a login's answer is in its errors.
type sessionLogin struct {
	session *connection.SessionSettings
	host    *url.URL // of the connection
	http    *http.Client
	jar     http.CookieJar // nil where cookies are not kept

	// refusal is the error with which the login was refused, nil for none, and refusedAt its time. flight guards
	// both, because it runs one login at a time.
	refusal   *tool.Error
	refusedAt time.Time
}

// loginAnswer is the answer to a login.
type loginAnswer struct {
	status  int
	headers map[string]string
	scope   expression.MapScope
	asked   time.Time
	date    time.Time // when it was written, by the server's clock; zero where it does not say
}

// issueToken logs in. A login that was refused is not sent again for a while.
func (l *sessionLogin) issueToken(ctx context.Context) (accessToken, error) {
	if l.refusal != nil && time.Since(l.refusedAt) < refusalPause {
		return accessToken{}, l.refusal
	}
	l.refusal = nil
	token, err := l.logIn(ctx)
	if refusal, ok := errors.AsType[*tool.Error](err); ok && refusal.Class == interpreter.ClassFinal {
		refusal.Message += fmt.Sprintf("; the same login is not sent again for %s", refusalPause)
		l.refusal, l.refusedAt = refusal, time.Now()
	}
	return token, err
}

func (l *sessionLogin) logIn(ctx context.Context) (accessToken, error) {
	login := l.session.Login
	content, contentType, err := request.EncodeBody(login.Body, login.Form)
	if err != nil {
		return accessToken{}, err
	}
	asked := time.Now()
	response, err := l.sendExchange(ctx, &login, content, contentType, nil)
	if err != nil {
		return accessToken{}, err
	}
	defer response.Body.Close()
	answer := &loginAnswer{status: response.StatusCode, headers: flatHeaders(response.Header), asked: asked}
	if answer.status >= http.StatusBadRequest {
		return accessToken{}, answer.refusedError()
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxLoginAnswer+1))
	switch {
	case err != nil:
		return accessToken{}, &url.Error{Op: login.Method, URL: tool.Origin(login.URL), Err: fmt.Errorf("its response was cut short: %w", err)}
	case len(body) > maxLoginAnswer:
		return accessToken{}, answer.answerFault("its response has more than %d bytes", maxLoginAnswer)
	}
	answer.date, _ = http.ParseTime(response.Header.Get("Date"))
	answer.scope = expression.MapScope{
		"response": bodyValue(body), "headers": anyMap(answer.headers), "cookies": cookieValues(response), "status": answer.status,
	}
	return answer.tokenOf(l.session)
}

// sendExchange sends a login or a logout.
func (l *sessionLogin) sendExchange(ctx context.Context, e *connection.Exchange, content []byte, contentType string, token *accessToken) (*http.Response, error) {
	sent, err := http.NewRequestWithContext(ctx, e.Method, e.URL.String(), bodyReader(content))
	if err != nil {
		return nil, err
	}
	for _, header := range e.Headers {
		sent.Header.Set(header.Name, header.Value)
	}
	setDefault(sent.Header, "Content-Type", contentType)
	setDefault(sent.Header, "Accept", request.UsualAccept)
	setDefault(sent.Header, "User-Agent", request.UsualUserAgent)
	if token != nil {
		place := l.session.Send
		switch {
		case place.Header != "":
			setDefault(sent.Header, place.Header, token.value)
		case place.Cookie != "":
			sent.AddCookie(&http.Cookie{Name: place.Cookie, Value: token.value})
		default:
			query := sent.URL.Query()
			query.Set(place.Query, token.value)
			sent.URL.RawQuery = query.Encode()
		}
	}
	client := *l.http
	if l.jar != nil && tool.SameHost(l.host, e.URL) {
		client.Jar = l.jar
	}
	return client.Do(sent)
}

// logOut sends the logout.
func (l *sessionLogin) logOut(ctx context.Context, token accessToken) error {
	logout := *l.session.Logout
	where := "the logout at " + tool.Origin(logout.URL)
	filled, err := fillLogout(logout, token.token)
	if err != nil {
		return fmt.Errorf("%s cannot be sent: %w", where, err)
	}
	content, contentType, err := request.EncodeBody(filled.Body, filled.Form)
	if err != nil {
		return fmt.Errorf("%s cannot be sent: %w", where, err)
	}
	response, err := l.sendExchange(ctx, &filled, content, contentType, &token)
	if broken, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%s: %w", where, broken.Err)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be sent: %w", where, err)
	}
	_ = response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s returned HTTP %d", where, response.StatusCode)
	}
	return nil
}

// fillLogout returns a logout with the token inserted into its expressions.
func fillLogout(e connection.Exchange, token string) (connection.Exchange, error) {
	f := &filling{token: token}
	at := *e.URL
	escaped := f.fillText(at.Path, url.PathEscape)
	at.Path, at.RawPath = f.fillText(at.Path, nil), escaped
	at.RawQuery = f.fillText(at.RawQuery, url.QueryEscape)
	e.URL = &at
	headers := e.Headers
	e.Headers = nil
	for _, header := range headers {
		e.Headers = append(e.Headers, connection.NameValue{Name: header.Name, Value: f.fillText(header.Value, nil)})
	}
	e.Body = f.fillValue(e.Body)
	if e.Form != nil {
		e.Form, _ = f.fillValue(e.Form).(map[string]any)
	}
	return e, f.err
}

// filling renders texts with the token as their scope. It keeps the first error.
type filling struct {
	token string
	err   error
}

func (f *filling) fillText(text string, escape func(string) string) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	token := f.token
	if escape != nil {
		token = escape(token)
	}
	template, problems := expression.ParseTemplate(text)
	if len(problems) > 0 {
		f.err = errors.New("an expression cannot be read")
		return ""
	}
	value, err := template.Render(expression.MapScope{"token": token}, expression.DecisionBudget(time.Now()))
	if err != nil {
		f.err = errors.New("an expression cannot be evaluated")
	}
	return expression.Text(value)
}

func (f *filling) fillValue(value any) any {
	switch value := value.(type) {
	case string:
		return f.fillText(value, nil)
	case []any:
		filled := make([]any, len(value))
		for i, item := range value {
			filled[i] = f.fillValue(item)
		}
		return filled
	case map[string]any:
		filled := make(map[string]any, len(value))
		for name, item := range value {
			filled[name] = f.fillValue(item)
		}
		return filled
	}
	return value
}

// refusedError returns the error of a login whose response has an error status.
func (a *loginAnswer) refusedError() error {
	e := a.answerFault("it returned HTTP %d", a.status)
	e.Class = interpreter.ClassifyHTTP(a.status, ratelimit.IsLimited(a.headers))
	if wait, found := ratelimit.RetryAfter(a.headers, a.status, time.Now()); found {
		e.RetryAfter = &wait
	} else if unread := ratelimit.UnreadHeader(a.headers, a.status); unread != "" {
		e.Message += "; " + unread
	}
	return e
}

// answerFault returns the error of an answer that cannot be used.
func (a *loginAnswer) answerFault(format string, args ...any) *tool.Error {
	return &tool.Error{
		Kind: interpreter.KindHTTP, Class: interpreter.ClassFinal, Type: typeLogin, Status: a.status, Message: fmt.Sprintf(format, args...),
	}
}

// tokenOf returns the token of an answer.
func (a *loginAnswer) tokenOf(session *connection.SessionSettings) (accessToken, error) {
	value, err := a.evaluateValue("token", session.Token)
	if err != nil {
		return accessToken{}, err
	}
	token := accessToken{}
	switch value := value.(type) {
	case string, int:
		token.token = expression.Text(value)
	}
	if token.token == "" {
		return accessToken{}, a.answerFault("it returned HTTP %d, but session.token gives no text for its response", a.status)
	}
	token.value = token.token
	if session.Send.Value != nil {
		sent, err := session.Send.Value.Render(expression.MapScope{"token": token.token}, expression.DecisionBudget(a.asked))
		if err != nil {
			return accessToken{}, a.answerFault("session.send.value cannot be evaluated with its token")
		}
		token.value = expression.Text(sent)
	}
	cookie := http.Cookie{Name: session.Send.Cookie, Value: token.value}
	if len(token.value) > maxToken || !httpguts.ValidHeaderFieldValue(token.value) || token.value == "" || session.Send.Cookie != "" && cookie.Valid() != nil {
		return accessToken{}, a.answerFault("its token cannot be sent: it is too long, or has characters that are not allowed there")
	}
	token.until, err = a.tokenUntil(session)
	return token, err
}

// evaluateValue evaluates a template of the session on the answer. Its error does not quote the
// answer.
func (a *loginAnswer) evaluateValue(key string, template *expression.Template) (any, error) {
	value, err := template.Render(a.scope, expression.DecisionBudget(a.asked))
	if err != nil {
		return nil, a.answerFault("it returned HTTP %d, but session.%s cannot be evaluated with its response", a.status, key)
	}
	return value, nil
}

// tokenUntil is when a token must be replaced.
func (a *loginAnswer) tokenUntil(session *connection.SessionSettings) (time.Time, error) {
	life := session.Lifetime
	if session.Expires == nil {
		if life == 0 {
			return time.Time{}, nil
		}
		return usableUntil(a.asked, a.asked.Add(life)), nil
	}
	value, err := a.evaluateValue("expires", session.Expires)
	if err != nil {
		return time.Time{}, err
	}
	life, known := a.tokenLife(value)
	switch {
	case !known:
		return time.Time{}, a.answerFault("session.expires must give a number of seconds, a duration or a time, such as {{ response.expires_in }}; convert seconds since 1970 with date(…)")
	case life <= 0:
		return time.Time{}, a.answerFault("its token has already expired, according to session.expires")
	}
	return usableUntil(a.asked, a.asked.Add(life)), nil
}

// tokenLife returns how long a token is valid, by the value of expires. A time is compared with the server's clock,
// not with the local one.
func (a *loginAnswer) tokenLife(value any) (life time.Duration, known bool) {
	if text, isText := value.(string); isText {
		if duration, err := time.ParseDuration(text); err == nil {
			return duration, duration <= mostLife
		}
		number, isNumber := expression.ParseNumber(text)
		if at, isTime := expression.ParseTime(text); isTime && !isNumber {
			now := a.date
			if now.IsZero() {
				now = a.asked
			}
			return min(at.Sub(now), mostLife), true
		}
		value = number
	}
	seconds, isNumber := expression.NearestFloat(value)
	return time.Duration(min(seconds, mostLife.Seconds()) * float64(time.Second)), isNumber && seconds <= mostLife.Seconds()
}

// issueError converts the error of a login to the error of an attempt.
func (l *sessionLogin) issueError(name string, err error) error {
	where := fmt.Sprintf("connection %q: the login at %s", name, tool.Origin(l.session.Login.URL))
	if broken, ok := errors.AsType[*url.Error](err); ok {
		return unreachedError(where, broken)
	}
	if own, ok := errors.AsType[*tool.Error](err); ok {
		of := *own
		of.Message = fmt.Sprintf("%s failed: %s", where, own.Message)
		return &of
	}
	if tool.IsContextError(err) {
		return err // of the attempt
	}
	return tool.ConfigErrorf("%s cannot be sent: %w", where, err)
}

// refusedBy reports whether an answer is one that refused_when is true for.
func (l *sessionLogin) refusedBy(name string, response *http.Response) (bool, error) {
	when := l.session.RefusedWhen
	if when == nil {
		return false, nil
	}
	scope := expression.MapScope{"headers": anyMap(flatHeaders(response.Header)), "status": response.StatusCode}
	if when.UsesNames("response") {
		scope["response"] = peekedBody(response)
	}
	refused, err := when.Render(scope, expression.DecisionBudget(time.Now()))
	if err != nil {
		return false, tool.ConfigErrorf("connection %q: session.refused_when cannot be evaluated with the response of %s", name, requestPath(response.Request))
	}
	return expression.Truthy(refused), nil
}

// refusedError returns the error for a response that refuses the token without being an error
// itself.
func (l *sessionLogin) refusedError(name string, response *http.Response) error {
	return &tool.Error{
		Kind: interpreter.KindHTTP, Class: interpreter.ClassFinal, Type: typeLogin, Status: response.StatusCode,
		Message: fmt.Sprintf("connection %q: the response of %s refuses the session (refused_when), even after a new login", name, requestPath(response.Request)),
	}
}

// peekedBody returns the value of a response body that is still to be read; nil if it is longer than maxRefusal.
func peekedBody(response *http.Response) any { return bodyValue(peekedBytes(response)) }

// peekedBytes returns the bytes of a response body that is still to be read; nil if it is longer than
// maxRefusal.
func peekedBytes(response *http.Response) []byte {
	read, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal+1)) // its error comes again
	rest := response.Body
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(read), rest), rest}
	if len(read) > maxRefusal {
		return nil
	}
	packed := *response
	packed.Body = io.NopCloser(bytes.NewReader(read))
	body, _, err := decodeBody(&packed)
	if err != nil {
		return nil
	}
	read, _ = io.ReadAll(io.LimitReader(body, maxRefusal))
	return read
}

// bodyValue returns a body as JSON, else as text; nil if it is empty or neither.
func bodyValue(body []byte) any {
	if value, err := expression.Decode(body); err == nil {
		return value
	}
	if len(bytes.TrimSpace(body)) == 0 || !utf8.Valid(body) {
		return nil
	}
	return string(body)
}

func anyMap(texts map[string]string) map[string]any {
	values := make(map[string]any, len(texts))
	for name, text := range texts {
		values[name] = text
	}
	return values
}

func cookieValues(response *http.Response) map[string]any {
	values := map[string]any{}
	for _, cookie := range response.Cookies() {
		values[cookie.Name] = cookie.Value
	}
	return values
}
