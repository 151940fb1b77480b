package plan

// Cost is the monthly cost of the cluster before and after a plan, for a month of 730 hours at
// list prices. It does not include discounts, taxes, data transfer and other usage.
type Cost struct {
	Currency string  `json:"currency"` // "USD", or "CNY" in China
	Before   float64 `json:"before"`   // a month
	After    float64 `json:"after"`    // a month
	// Prices is the date of the price list: "2026-11-23". Services have lists of their own; it
	// is the newest date.
	Prices string     `json:"pricesOf"`
	Items  []CostItem `json:"items"`
	// Unpriced are parts of the cluster that are missing in Before and After, because their
	// price is not known.
	Unpriced []string `json:"unpriced,omitempty"`
	// NotCounted names usage that nobody knows in advance.
	NotCounted []string `json:"notCounted"`
}

// CostItem is a part of the cost of one resource.
type CostItem struct {
	Resource  ID      `json:"resource"`
	Group     string  `json:"group"` // what a summary counts it with: "NAT gateways"
	Item      string  `json:"item"`  // "t3.large, On-Demand, Linux"
	Unit      string  `json:"unit"`  // "hour", "GB-month"
	UnitPrice float64 `json:"unitPrice"`
	// AtMost says that the price may be lower: it is a spot price that could not be read.
	AtMost bool       `json:"atMost,omitempty"`
	Before CostAmount `json:"before"`
	After  CostAmount `json:"after"`
}

// CostAmount has the quantity of an item, and its costs.
type CostAmount struct {
	Pieces   int     `json:"pieces"` // 0 for a part of other items of the group, such as IOPS
	Quantity float64 `json:"monthlyQuantity"`
	Amount   float64 `json:"monthlyAmount"` // rounded to a hundredth
}
