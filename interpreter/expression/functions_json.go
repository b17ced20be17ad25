package expression

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

var jsonFunctions = []function{
	{
		name: "toJSON", min: 1, max: 1, signature: "toJSON(x)",
		doc: "x as compact JSON with sorted keys.", call: callToJSON,
	},
	{
		name: "fromJSON", min: 1, max: 1, signature: "fromJSON(text)",
		doc: "The value of a JSON text. Numbers stay exact, and a key that occurs twice is an error.", call: callFromJSON,
	},
	{
		name: "toBase64", min: 1, max: 1, signature: "toBase64(text)",
		doc: "The text in base64.", call: callOnText(callToBase64),
	},
	{
		name: "fromBase64", min: 1, max: 1, signature: "fromBase64(text)",
		doc: "The decoded text of base64, in the standard or the URL alphabet, with or without padding.", call: callOnText(callFromBase64),
	},
}

func callToJSON(b *Budget, args []any) (any, error) {
	if err := chargeWeight(b, args[0]); err != nil {
		return nil, err
	}
	data, err := Encode(args[0])
	if err != nil {
		return nil, err
	}
	return string(data), nil
}

func callFromJSON(b *Budget, args []any) (any, error) {
	s, ok := args[0].(string)
	if !ok {
		return nil, argumentError("fromJSON", "a string", args[0])
	}
	if err := b.chargeText(len(s)); err != nil {
		return nil, err
	}
	// Each of these characters introduces at most one value.
	n := 1
	for _, mark := range []string{",", "[", "{", ":"} {
		n += strings.Count(s, mark)
	}
	if err := b.chargeWork(n, n*bytesPerItem); err != nil {
		return nil, err
	}
	v, err := DecodeExact([]byte(s)) // the text comes from outside, as the body of a response does
	if err != nil {
		return nil, fmt.Errorf("fromJSON cannot read %s: %w", describeValue(s), err)
	}
	return v, nil
}

func callToBase64(b *Budget, s []string, _ []any) (any, error) {
	if err := b.chargeText(base64.StdEncoding.EncodedLen(len(s[0]))); err != nil {
		return nil, err
	}
	return base64.StdEncoding.EncodeToString([]byte(s[0])), nil
}

func callFromBase64(b *Budget, s []string, _ []any) (any, error) {
	if err := b.chargeText(len(s[0])); err != nil {
		return nil, err
	}
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(s[0], "-_") {
		encoding = base64.RawURLEncoding
	}
	data, err := encoding.DecodeString(strings.TrimRight(strings.TrimSpace(s[0]), "="))
	if err != nil {
		return nil, fmt.Errorf("fromBase64 cannot read %s: %w", describeValue(s[0]), err)
	}
	if !utf8.Valid(data) {
		return nil, errors.New("fromBase64 would return bytes that are not UTF-8 text; use a tool for bytes")
	}
	return string(data), nil
}
