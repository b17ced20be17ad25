package connect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// Attributes compares the search attributes of a namespace with the wanted ones. Every wanted name is in one of the
// lists, which are sorted.
type Attributes struct {
	Present []string `json:"present"`
	Added   []string `json:"added"`
	Missing []string `json:"missing"`
	// Mistyped lists attributes that exist with another type; no server can change a type.
	Mistyped []MistypedAttribute `json:"mistyped,omitempty"`
}

// Has reports whether runs may use these search attributes.
func (a Attributes) Has(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(a.Present, name) && !slices.Contains(a.Added, name) })
}

// MistypedAttribute is a search attribute whose type is not the wanted one.
type MistypedAttribute struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Want string `json:"want"`
}

func (m MistypedAttribute) Error() string {
	return fmt.Sprintf("search attribute %s is of type %s, expected %s", m.Name, m.Type, m.Want)
}

// RightsError is the error if a server does not let this client, or any client, add search attributes. Its message is
// complete without context.
type RightsError struct {
	// Absent is set if the server has no operator service for anybody, as on Temporal Cloud.
	Absent    bool
	Namespace string
	Err       error
}

func (e *RightsError) Error() string {
	if e.Absent {
		return fmt.Sprintf("the server cannot add search attributes to the namespace %q, as on Temporal Cloud", e.Namespace)
	}
	return fmt.Sprintf("this client may not add search attributes to the namespace %q: %v", e.Namespace, e.Err)
}

// Unwrap returns the server's response.
func (e *RightsError) Unwrap() error { return e.Err }

// rightsError converts err to a *RightsError if it means that the service is absent or denied, else it returns err.
func rightsError(namespace string, err error) error {
	if absent := isUnimplemented(err); absent || isDenied(err) {
		return &RightsError{Absent: absent, Namespace: namespace, Err: err}
	}
	return err
}

// attributesTimeout bounds requests about search attributes.
const attributesTimeout = 10 * time.Second

// CheckAttributes reports which of the wanted search attributes a namespace has.
func CheckAttributes(
	ctx context.Context, c client.Client, namespace string, wanted map[string]enums.IndexedValueType,
) (Attributes, error) {
	ctx, cancel := context.WithTimeout(ctx, attributesTimeout)
	defer cancel()
	known, err := knownAttributes(ctx, c, namespace)
	if err != nil {
		return Attributes{}, fmt.Errorf("list search attributes: %w", err)
	}
	found := Attributes{Present: []string{}, Added: []string{}, Missing: []string{}}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		switch kind, isKnown := known[name]; {
		case !isKnown:
			found.Missing = append(found.Missing, name)
		case kind != wanted[name]:
			found.Mistyped = append(found.Mistyped, MistypedAttribute{Name: name, Type: kind.String(), Want: wanted[name].String()})
		default:
			found.Present = append(found.Present, name)
		}
	}
	return found, nil
}

// knownAttributes returns the search attributes of a namespace with their types.
func knownAttributes(ctx context.Context, c client.Client, namespace string) (map[string]enums.IndexedValueType, error) {
	listed, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err == nil {
		return listed.GetCustomAttributes(), nil
	}
	if _, ok := errors.AsType[*RightsError](rightsError(namespace, err)); !ok {
		return nil, err
	}
	// A client that may use a namespace may read its description, which maps each attribute to a field such as
	// Keyword02.
	described, failure := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	if failure != nil {
		return nil, err
	}
	known := map[string]enums.IndexedValueType{}
	for field, name := range described.GetConfig().GetCustomSearchAttributeAliases() {
		known[name], _ = enums.IndexedValueTypeFromString(strings.TrimRight(field, "0123456789"))
	}
	return known, nil
}

// EnsureAttributes adds missing search attributes to a namespace. The server may take about a second until runs can
// use them. If only administrators may add them, the error is a *RightsError, and runs work without them. The result
// is valid with an error, too: it holds what is known.
func EnsureAttributes(
	ctx context.Context, c client.Client, namespace string, wanted map[string]enums.IndexedValueType,
) (Attributes, error) {
	found, err := CheckAttributes(ctx, c, namespace, wanted)
	switch {
	case err != nil:
		return found, err
	case len(found.Missing) > 0:
		if err := addAttributes(ctx, c, namespace, wanted, found.Missing); err != nil {
			return found, fmt.Errorf("add search attributes: %w", err)
		}
		found.Added, found.Missing = found.Missing, found.Added
	}
	if len(found.Mistyped) > 0 {
		return found, found.Mistyped[0]
	}
	return found, nil
}

func addAttributes(
	ctx context.Context, c client.Client, namespace string, wanted map[string]enums.IndexedValueType, names []string,
) error {
	ctx, cancel := context.WithTimeout(ctx, attributesTimeout)
	defer cancel()
	adds := make(map[string]enums.IndexedValueType, len(names))
	for _, name := range names {
		adds[name] = wanted[name]
	}
	_, err := c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: namespace, SearchAttributes: adds,
	})
	if isAlreadyThere(err) { // somebody else was quicker
		return nil
	}
	return rightsError(namespace, err)
}
