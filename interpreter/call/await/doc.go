// Package await models an attempt that a person or another system answers: its deadline, the question of an
// approval, the answer, and the outcome that follows from it.
package await
