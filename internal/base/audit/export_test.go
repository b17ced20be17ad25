package audit

// MostLine is mostLine.
const MostLine = mostLine

// MostName is mostName.
const MostName = mostName
