// Package await is what a call knows of an attempt that a person or another system answers: until when it is awaited,
// the question that an approval asks, the answer that has come, and the outcome that it makes.
package await
