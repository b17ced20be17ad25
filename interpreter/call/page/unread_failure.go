package page

import (
	"slices"

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
	// failureDetails are the members that describe an error that is alone in a response. Beside others, `error` may be a
	// column of a row.
	failureDetails = []string{"error", "code", "status", "statuscode", "type", "message", "errordescription", "details", "detail", "requestid", "documentation", "ok", "success"}
)

// UnreadFailure returns the member of a response that says that it failed, or lacks rows, if no condition reads it; "" for none.
func UnreadFailure(response any, conditions []expression.Ref) string {
	object, isMap := response.(map[string]any)
	if !isMap {
		return ""
	}
	of := Unread{Conditions: conditions}
	for _, key := range playbook.SortedKeys(object) {
		if path := []any{key}; saysFailure(object, key) {
			if of.isRead(path) {
				return ""
			}
			return memberName(expression.Ref{Root: "response", Path: path})
		}
	}
	return ""
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
	}
	return false
}

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

// isOnlyError reports whether a response has nothing but an error and what describes it.
func isOnlyError(response map[string]any) bool {
	//workflowcheck:ignore whether there is any
	for key := range response {
		if !slices.Contains(failureDetails, plainName([]any{key})) {
			return false
		}
	}
	return true
}
