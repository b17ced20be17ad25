// Package lists has functions on slices that package slices lacks.
package lists

import "slices"

// Map returns the results of convert for all elements, in order. It is never nil.
func Map[E, R any](list []E, convert func(E) R) []R {
	out := make([]R, len(list))
	for i, one := range list {
		out[i] = convert(one)
	}
	return out
}

// Filter returns a new list of the elements that match, in order; nil if none does.
func Filter[E any](list []E, match func(E) bool) []E {
	var out []E
	for _, one := range list {
		if match(one) {
			out = append(out, one)
		}
	}
	return out
}

// Pick returns the results of pick for the elements that it accepts, in order; nil if it
// accepts none.
func Pick[E, R any](list []E, pick func(E) (R, bool)) []R {
	var out []R
	for _, one := range list {
		if made, taken := pick(one); taken {
			out = append(out, made)
		}
	}
	return out
}

// AddUnique appends the elements that a list does not contain yet.
func AddUnique[E comparable](list []E, more ...E) []E {
	for _, one := range more {
		if !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	return list
}

// First returns the first element that matches; the zero value if none does.
func First[E any](list []E, match func(E) bool) E {
	for _, one := range list {
		if match(one) {
			return one
		}
	}
	var none E
	return none
}

// IsSame reports whether two lists have the same elements in the same memory, without a look at them.
func IsSame[E any](list, other []E) bool {
	return len(list) == len(other) && (len(list) == 0 || &list[0] == &other[0])
}
