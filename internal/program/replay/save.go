package replay

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// saveStripped saves a history without its values in a folder.
func saveStripped(folder string, number int64, history *historypb.History) error {
	stripped := proto.CloneOf(history)
	stripValues(stripped.ProtoReflect())
	text, err := temporalproto.CustomJSONMarshalOptions{Indent: "  "}.Marshal(stripped)
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, fmt.Sprintf("history-%05d.json", number)), append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("save a history: %w", err)
	}
	return nil
}

// personal are the fields with texts written by people or other systems; IDs and names of types are kept.
var personal = map[protoreflect.Name]bool{
	"identity": true, "message": true, "stack_trace": true, "reason": true, "cause": true, "binary_checksum": true,
}

// stripValues replaces the values in a message by their types and sizes, and texts of people and errors by their
// lengths.
func stripValues(message protoreflect.Message) {
	switch value := message.Interface().(type) {
	case *commonpb.Payload:
		stripPayload(value)
		return
	case *failurepb.Failure:
		value.EncodedAttributes = nil
	}
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsMap():
			value.Map().Range(func(_ protoreflect.MapKey, item protoreflect.Value) bool {
				if field.MapValue().Message() != nil {
					stripValues(item.Message())
				}
				return true
			})
		case field.IsList() && field.Message() != nil:
			for i := range value.List().Len() {
				stripValues(value.List().Get(i).Message())
			}
		case field.IsList():
		case field.Message() != nil:
			stripValues(value.Message())
		case field.Kind() == protoreflect.StringKind && personal[field.Name()]:
			message.Set(field, protoreflect.ValueOfString(fmt.Sprintf("text of %d bytes", len(value.String()))))
		}
		return true
	})
}

// stripPayload replaces a value by its encoding, JSON type, and size in bytes.
func stripPayload(value *commonpb.Payload) {
	stripped := map[string][]byte{"bytes": []byte(strconv.Itoa(len(value.GetData())))}
	if encoding := value.GetMetadata()["encoding"]; encoding != nil {
		stripped["encoding"] = encoding
	}
	var decoded any
	kind := "binary"
	if json.Unmarshal(value.GetData(), &decoded) == nil {
		switch decoded.(type) {
		case nil:
			kind = "null"
		case map[string]any:
			kind = "object"
		case []any:
			kind = "array"
		case string:
			kind = "string"
		case bool:
			kind = "boolean"
		default:
			kind = "number"
		}
	}
	stripped["type"] = []byte(kind)
	value.Metadata, value.Data = stripped, nil
}
