package connector

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"reprise/internal/program/connector/jinja"
	"reprise/internal/program/node"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// policy is an entry of `retry` for failures.
type policy struct {
	comment string
	when    string
	then    []pair
}

// convertErrors converts the policies for failures: those of the manifest, and what the CDK retries by default.
func (c *converter) convertErrors(s *step, requester component) {
	handlers := []component{requester.childAt("error_handler")}
	if handlers[0].kind() == "CompositeErrorHandler" {
		handlers = handlers[0].componentList("error_handlers")
	}
	usual := retryPolicy(nil, 5)
	for _, handler := range handlers {
		switch kind := handler.kind(); kind {
		case "", "DefaultErrorHandler":
		case "CompositeErrorHandler":
			s.addGap(atRetry, kind, "in another one")
			continue
		case "Custom":
			s.addGap(atRetry, customName(handler, "CustomErrorHandler"), "failures are retried as usual")
			continue
		default:
			s.addGap(atRetry, kind, "")
			continue
		}
		retries := 5
		if n, ok := handler.wholeNumber("max_retries"); ok {
			retries = n
		}
		waits := retryPolicy(c.backoffPolicies(s, handler, retries), retries)
		if len(waits) > 1 || retries != 5 {
			usual = waits
		}
		for _, filter := range handler.componentList("response_filters") {
			c.filterPolicies(s, filter, waits)
		}
	}
	s.failures = append(s.withoutUsual(usual), policy{when: "error.class in ['retryable', 'rate_limited']", then: usual})
}

// withoutUsual returns the policies without those at their end that retry, in the usual way, what is retried anyway.
func (s *step) withoutUsual(usual []pair) []policy {
	var others []policy
	for i, p := range slices.Backward(s.failures) {
		named := statusOf.FindStringSubmatch(p.when)
		if named == nil { // it may match the same failures
			return append(slices.Clone(s.failures[:i+1]), others...)
		}
		if !reflect.DeepEqual(p.then, usual) || slices.ContainsFunc(strings.Split(named[1], ", "), isFinal) {
			others = append([]policy{p}, others...)
		}
	}
	return others
}

// isFinal reports whether a status is not retried without a policy that names it.
func isFinal(text string) bool {
	status, err := strconv.Atoi(text)
	return err != nil || interpreter.ClassifyHTTP(status, false) == interpreter.ClassFinal
}

// defaultRetries is the maximum number of retries of a worker by default.
const defaultRetries = 10

// retryPolicy returns the keys of a policy that retries.
func retryPolicy(backoff []pair, retries int) []pair {
	return append([]pair{{"max_attempts", min(retries, defaultRetries) + 1}}, backoff...)
}

// backoffPolicies returns the keys that express how long a handler's strategies wait.
func (c *converter) backoffPolicies(s *step, handler component, retries int) (out []pair) {
	if retries > defaultRetries {
		addNoteOf(c, s, "%d retries are more than the %d that a worker allows by default: raise REPRISE_RETRY_MAX_RETRIES_LIMIT and max_attempts", retries, defaultRetries)
	}
	var headers []string
	for _, strategy := range handler.componentList("backoff_strategies") {
		switch kind := strategy.kind(); kind {
		case "ConstantBackoffStrategy":
			seconds := c.secondsOf(s, strategy, "backoff_time_in_seconds")
			if seconds != nil && !hasPair(out, "delay") && !hasPair(out, "initial_delay") {
				out = append(out, pair{"delay", seconds})
			}
		case "ExponentialBackoffStrategy":
			factor, ok := strategy.wholeNumber("factor")
			if !ok {
				factor = 5
			}
			if !hasPair(out, "delay") && !hasPair(out, "initial_delay") {
				longest := factor << min(retries, 10)
				out = append(out, pair{"initial_delay", fmt.Sprintf("%ds", 2*factor)}, pair{"max_delay", fmt.Sprintf("%ds", max(longest, 2*factor))})
			}
		case "WaitTimeFromHeader", "WaitUntilTimeFromHeader":
			header, _ := c.translateAt(s, atRetry, strategy, "header", nil).(string)
			if header == "" {
				continue
			}
			if strategy["regex"] != nil {
				s.addGap(atRetry, kind, "the regex %v of the header %s", strategy["regex"], header)
				continue
			}
			if strategy["min_wait"] != nil {
				addNoteOf(c, s, "min_wait of %s is not converted: a wait is at least what the header %s says", kind, header)
			}
			if !strings.EqualFold(header, "Retry-After") { // which is obeyed anyway
				headers = append(headers, "error"+memberPath([]any{"headers", strings.ToLower(header)}))
			}
		case "Custom":
			s.addGap(atRetry, customName(strategy, "CustomBackoffStrategy"), "waits are the usual ones")
		default:
			s.addGap(atRetry, kind, "")
		}
	}
	if len(headers) > 0 {
		out = append(out, pair{"retry_after", node.Verbatim("{{ " + strings.Join(headers, " or ") + " }}")})
	}
	return out
}

func hasPair(list []pair, name string) bool {
	return slices.ContainsFunc(list, func(one pair) bool { return one.name == name })
}

// secondsOf converts a number of seconds to a duration.
func (c *converter) secondsOf(s *step, of component, key string) any {
	switch value := c.translateAt(s, atRetry, of, key, nil).(type) {
	case int, float64:
		return fmt.Sprintf("%vs", value)
	case string:
		if number.MatchString(value) {
			return value + "s"
		}
	case node.Verbatim:
		return value
	}
	s.addGap(atRetry, of.kind(), "%s %v", key, of[key])
	return nil
}

// filterPolicies adds the policies of a response filter: one for failures, and one for successful responses that it
// treats as failures.
func (c *converter) filterPolicies(s *step, filter component, waits []pair) {
	if filter.kind() == "Custom" {
		s.addGap(atRetry, customName(filter, "CustomResponseFilter"), "responses are treated as if there were none")
		return
	}
	var failed, succeeded []string
	codes, good := statusCodes(filter["http_codes"])
	if len(codes) > 0 {
		failed = append(failed, codeAmong("error.status", codes))
	}
	if len(good) > 0 {
		succeeded = append(succeeded, codeAmong("this.meta.status", good))
	}
	if part := filter.text("error_message_contains"); part != "" {
		failed = append(failed, "string(error.body) contains "+quoteText(part))
	}
	if predicate := filter.text("predicate"); predicate != "" {
		for _, one := range []struct {
			root []any
			into *[]string
		}{{[]any{"error", "body"}, &failed}, {[]any{"response"}, &succeeded}} {
			condition, err := c.convertPredicate(s, filter, predicate, one.root)
			if err != nil {
				s.addGap(atRetry, "HttpResponseFilter", "%s: %v", oneLine(predicate), err)
				return
			}
			*one.into = append(*one.into, condition)
		}
	}
	then := c.failureAction(s, filter, waits)
	comment := oneLine(cmp.Or(filter.text("description"), filter.text("error_message")))
	if filter.text("action") == "FAIL" || jinja.HasTemplate(comment) {
		comment = ""
	}
	if len(failed) > 0 && then != nil {
		s.failures = append(s.failures, policy{comment: comment, when: strings.Join(failed, " or "), then: then})
	}
	if len(succeeded) > 0 {
		if then := c.successAction(s, filter, waits); then != nil {
			s.failures = append(s.failures, policy{comment: comment, when: strings.Join(succeeded, " or "), then: then})
		}
	}
}

// convertPredicate converts a condition over the response body, which has the name root in the playbook.
func (c *converter) convertPredicate(s *step, filter component, predicate string, root []any) (string, error) {
	var into trace
	headers := "this.meta.headers"
	if root[0] == "error" {
		headers = "error.headers"
	}
	condition, err := c.stepScope(s, filter, &into).withRoots(scope{
		"response": func(keys []any) (code, error) {
			return pathCode(root[0].(string), append(slices.Clone(root[1:]), keys...)...), nil // as they are given above
		},
		"headers": func(keys []any) (code, error) {
			if len(keys) > 0 {
				keys = append([]any{strings.ToLower(expression.Text(keys[0]))}, keys[1:]...)
			}
			return pathCode(headers, keys...), nil
		},
	}).translateExpression(predicate)
	if err != nil {
		return "", err
	}
	c.read.mergeTrace(into)
	guard := "error is defined"
	if root[0] == "response" {
		guard = "error is not defined"
	}
	if condition.falsy {
		return condition.operandText(precOr), nil
	}
	return guard + " and " + condition.operandText(precAnd), nil
}

// statusCodes splits status codes into those that mean failure and those that mean success.
func statusCodes(of any) (failed, succeeded []int) {
	list, _ := of.([]any)
	for _, one := range list {
		switch status, ok := (component{"n": one}).wholeNumber("n"); {
		case !ok:
		case status >= 400:
			failed = append(failed, status)
		default:
			succeeded = append(succeeded, status)
		}
	}
	return failed, succeeded
}

func codeAmong(name string, codes []int) string {
	if len(codes) == 1 {
		return fmt.Sprintf("%s == %d", name, codes[0])
	}
	texts := make([]string, len(codes))
	for i, code := range codes {
		texts[i] = fmt.Sprint(code)
	}
	return name + " in [" + strings.Join(texts, ", ") + "]"
}

// errorMessage returns the error message of a filter; "" if it has none.
func (c *converter) errorMessage(s *step, filter component, body string) any {
	text := filter.text("error_message")
	if text == "" {
		return ""
	}
	var into trace
	value, err := c.stepScope(s, filter, &into).withRoots(scope{"response": rootedKeys(body), "headers": rootedKeys("this.meta.headers")}).translateValue(text)
	if err != nil {
		return "the API refused the request"
	}
	c.read.mergeTrace(into)
	return value
}

// failureAction returns what a policy for failures does; nil if nothing.
func (c *converter) failureAction(s *step, filter component, waits []pair) []pair {
	switch action := filter.text("action"); action {
	case "RETRY", "RATE_LIMITED", "":
		return waits
	case "IGNORE", "SUCCESS":
		return []pair{{"ignore", true}}
	case "FAIL":
		if message := c.errorMessage(s, filter, "error.body"); message != "" {
			return []pair{{"fail", message}}
		}
		return []pair{}
	default:
		s.addGap(atRetry, "HttpResponseFilter", "the action %s", action)
		return nil
	}
}

// successAction returns what a policy does for a response that reports success.
func (c *converter) successAction(s *step, filter component, waits []pair) []pair {
	message := c.errorMessage(s, filter, "response")
	if message == "" {
		message = "the answer says that it failed"
	}
	switch action := filter.text("action"); action {
	case "RETRY", "RATE_LIMITED":
		if filter["http_codes"] != nil && filter["predicate"] == nil {
			return waits
		}
		class := map[string]string{"RETRY": "retryable", "RATE_LIMITED": "rate_limited"}[action]
		return []pair{{"fail", message}, {"class", class}}
	case "FAIL":
		return []pair{{"fail", message}}
	case "IGNORE":
		return []pair{{"result", noRows}}
	}
	return nil
}
