package connect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
)

// EnsureAttributes adds search attributes to a namespace where they are
// missing. A server can take about a second until runs may use them. Some
// servers let only an administrator add them: then it is an error, and runs do
// without.
func EnsureAttributes(
	ctx context.Context, c client.Client, namespace string, wanted map[string]enums.IndexedValueType,
) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	operator := c.OperatorService()
	known, err := operator.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return fmt.Errorf("list search attributes: %w", err)
	}
	missing := maps.Clone(wanted)
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		kind, found := known.GetCustomAttributes()[name]
		if found && kind != wanted[name] {
			return fmt.Errorf("search attribute %s is of type %s, expected %s", name, kind, wanted[name])
		}
		if found {
			delete(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = operator.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: namespace, SearchAttributes: missing,
	})
	var exists *serviceerror.AlreadyExists // somebody else was quicker
	if err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("add search attributes: %w", err)
	}
	return nil
}
