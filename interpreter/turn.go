package interpreter

// SlotTurn returns how many seconds a failed attempt waited for a slot under a rate limit: the second detail of its
// error, after the ErrorObject.
func SlotTurn(failure interface{ Details(d ...any) error }) (turn float64) {
	var object ErrorObject
	if failure.Details(&object, &turn) != nil {
		return 0
	}
	return turn
}
