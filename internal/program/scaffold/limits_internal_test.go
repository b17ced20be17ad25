package scaffold

import (
	"fmt"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
)

// TestLargeDocuments passes maxDocument.
func TestLargeDocuments(t *testing.T) {
	t.Parallel()
	large := make([]byte, maxDocument+1)
	_, err := FromHAR(large)
	require.EqualError(t, err, "the HAR file is larger than 64 MiB")
	_, err = ReadOpenAPI(large, "")
	require.EqualError(t, err, "the document is larger than 64 MiB")
}

// TestSamplesEnd passes mostSampleDepth, mostSampleMembers and mostSampleValues, with schemas that name themselves.
func TestSamplesEnd(t *testing.T) {
	t.Parallel()
	itself := openapi3.NewObjectSchema()
	itself.Properties = openapi3.Schemas{"in": openapi3.NewSchemaRef("", itself)}
	depth := 0
	for at, isMap := sampleOf(openapi3.NewSchemaRef("", itself), "").(map[string]any); isMap; at, isMap = at["in"].(map[string]any) {
		depth++
	}
	require.Equal(t, mostSampleDepth+1, depth)

	wide := openapi3.NewObjectSchema()
	for i := range 2 * mostSampleMembers {
		wide.WithProperty(fmt.Sprint("m", i), openapi3.NewStringSchema())
	}
	require.Len(t, sampleOf(openapi3.NewSchemaRef("", wide), ""), mostSampleMembers)

	each := openapi3.NewObjectSchema()
	each.Properties = openapi3.Schemas{}
	for i := range mostSampleMembers {
		each.Properties[fmt.Sprint("m", i)] = openapi3.NewSchemaRef("", each)
	}
	s := &sampler{left: mostSampleValues}
	s.sampleValue(openapi3.NewSchemaRef("", each), "", 0)
	require.Negative(t, s.left, "the values end before the levels do")
}

// TestDeepMembers passes mostDepth.
func TestDeepMembers(t *testing.T) {
	t.Parallel()
	var deep any = "x"
	for range 2 * mostDepth {
		deep = map[string]any{"in": deep}
	}
	require.Len(t, membersOf(deep), mostDepth)
}
