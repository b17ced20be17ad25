package page

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// A response that counts as a success may say that a part of it failed: `errors` of GraphQL beside the data, of bulk
// requests beside the results of items, or `{"ok": false}`. Rows would then be missing in silence.

// Names of members that say so, without punctuation.
var (
	failureLists  = []string{"errors", "inserterrors", "partialfailureerror"}
	failureCounts = []string{"failedrecordcount", "failedputcount", "failedentrycount"}
	failureFlags  = []string{"incompleteresults", "timedout", "terminatedearly", "partialresults"} // if they are true
	successFlags  = []string{"ok", "success"}                                                      // if they are false
	failureTexts  = []string{"error", "errormessage", "errormsg", "exception", "fault"}            // if they have something
	failureCodes  = []string{"code", "status", "statuscode", "errorcode", "errcode"}
	// failureWords are what a status says of a whole response. A job or an order that failed also has a name or a number.
	failureWords = []string{"error", "fail", "failed", "failure"}
	// failureDetails are the members that describe an error that is alone in a response. Beside others, `error` may be a
	// column of a row.
	failureDetails = slices.Concat(failureTexts, failureCodes, successFlags, []string{
		"type", "title", "message", "msg", "errmsg", "reason", "errordescription", "errortype", "details", "detail", "instance", "requestid", "traceid",
		"timestamp", "path", "documentation",
	})
)

// UnreadFailure returns the member of a response that says that it failed, or lacks rows, and a condition that finds such
// responses, if no condition reads it; "" for none.
func UnreadFailure(response any, conditions []expression.Ref) (member, condition string) {
	object, isMap := response.(map[string]any)
	if !isMap {
		return "", ""
	}
	of := Unread{Conditions: conditions}
	for _, key := range playbook.SortedKeys(object) {
		path := []any{key}
		if !saysFailure(object, key) {
			continue
		}
		if of.isRead(path) {
			return "", ""
		}
		if member != "" {
			continue
		}
		member = memberName(expression.Ref{Root: "response", Path: path})
		condition = failureCondition(member, plainName(path), object[key])
	}
	return member, condition
}

// failureCondition returns a condition that finds responses with such a value of a member.
func failureCondition(member, name string, value any) string {
	switch value := value.(type) {
	case bool:
		if !value {
			return "not " + member
		}
	case string:
		if slices.Contains(failureCodes, name) {
			return fmt.Sprintf("%s == '%s'", member, value)
		}
	case int:
		if slices.Contains(failureCodes, name) && name != "errcode" && name != "errorcode" {
			return fmt.Sprintf("%s >= %d", member, http.StatusBadRequest)
		}
	}
	return member
}

// saysFailure reports whether a member of a response says that a part of it failed.
func saysFailure(response map[string]any, key string) bool {
	name, member := plainName([]any{key}), response[key]
	switch {
	case slices.Contains(failureLists, name):
		return isNotEmpty(member)
	case slices.Contains(failureCounts, name):
		count, isInt := member.(int)
		return isInt && count > 0
	case slices.Contains(failureFlags, name):
		return member == true
	case slices.Contains(successFlags, name):
		return member == false
	case name == "error":
		return isNotEmpty(member) && (hasRows(response) || isOnlyError(response))
	case slices.Contains(failureTexts, name):
		return isNotEmpty(member) && isOnlyError(response)
	case slices.Contains(failureCodes, name):
		return isFailureCode(name, member) && isOnlyError(response)
	}
	return false
}

// FailedItems returns the path of the list of a response whose elements say that they failed, their number, and the first of them; 0 for
// none. partial says that the status announces this (207). Otherwise an element must have a reason too: the response
// may return rows as they were sent, and these may have a status of their own.
func FailedItems(response any, partial bool, conditions []expression.Ref) (path string, failed int, first any) {
	items, at, _ := longestListAt(nil, response, 0)
	if (Unread{Conditions: conditions}).isRead(at) {
		return "", 0, nil
	}
	for _, item := range items {
		if itemFailed(item, partial, true) {
			if failed++; failed == 1 {
				first = item
			}
		}
	}
	return memberName(expression.Ref{Root: "response", Path: at}), failed, first
}

// itemFailed reports whether an element of a response says that it failed. An element of bulk requests may have all that
// in its only member, named after the operation.
func itemFailed(item any, partial, outermost bool) bool {
	object, _ := item.(map[string]any)
	if len(object) == 1 && outermost {
		if inner, isMap := object[playbook.SortedKeys(object)[0]].(map[string]any); isMap {
			return itemFailed(inner, partial, false)
		}
	}
	failed, reason := false, false
	for _, key := range playbook.SortedKeys(object) {
		name, member := plainName([]any{key}), object[key]
		code, isInt := totalOf(member).(int)
		switch {
		case slices.Contains(failureCodes, name):
			failed = failed || isInt && code >= http.StatusBadRequest && code < leastOtherCode
		case slices.Contains(successFlags, name):
			failed = failed || member == false
		case slices.Contains(failureLists, name), slices.Contains(failureTexts, name):
			reason = reason || isNotEmpty(member)
		}
	}
	return failed && reason || partial && (failed || reason)
}

// isFailureCode reports whether a code or status is that of a failure: a word, an HTTP status from 400 on, or an error code
// other than 0.
func isFailureCode(name string, value any) bool {
	switch value := value.(type) {
	case string:
		return slices.Contains(failureWords, strings.ToLower(value))
	case int:
		if name == "errcode" || name == "errorcode" {
			return value != 0
		}
		return value >= http.StatusBadRequest && value < leastOtherCode
	}
	return false
}

// leastOtherCode is the first number that is no HTTP status.
const leastOtherCode = 600

// isNotEmpty reports whether a value is true, or a list, map or text with something in it.
func isNotEmpty(value any) bool {
	switch value := value.(type) {
	case bool, []any, map[string]any:
		return expression.Truthy(value)
	case string:
		return value != "" && value != "false" && value != "null"
	}
	return false
}

// isOnlyError reports whether a response has nothing but an error, what describes it, and members with nothing in them: the rows
// that it would have.
func isOnlyError(response map[string]any) bool {
	//workflowcheck:ignore whether there is any
	for key, member := range response {
		if expression.Truthy(member) && !slices.Contains(failureDetails, plainName([]any{key})) {
			return false
		}
	}
	return true
}
