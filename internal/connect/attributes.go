package connect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
)

// EnsureKeywords adds search attributes of type Keyword to a namespace where
// they are missing. A server can take about a second until runs may use them.
// Some servers let only an administrator add them: then it is an error, and
// runs do without.
func EnsureKeywords(ctx context.Context, c client.Client, namespace string, names ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	operator := c.OperatorService()
	known, err := operator.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return fmt.Errorf("list search attributes: %w", err)
	}
	missing := map[string]enums.IndexedValueType{}
	for _, name := range names {
		switch kind, found := known.GetCustomAttributes()[name]; {
		case !found:
			missing[name] = enums.INDEXED_VALUE_TYPE_KEYWORD
		case kind != enums.INDEXED_VALUE_TYPE_KEYWORD:
			return fmt.Errorf("search attribute %s is of type %s, expected Keyword", name, kind)
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
