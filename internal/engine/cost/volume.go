package cost

import "fmt"

// Volume has the properties of an EBS volume on which its price depends.
type Volume struct {
	Type             string // "gp3"
	Size             int64  // GiB
	IOPS, Throughput int64  // IOPS and MiB/s; 0 for what the type includes
	Assumed          bool   // the image decides the type, and has not been looked up yet
}

// What a gp3 volume includes ("Amazon EBS pricing").
const (
	includedIOPS       = 3000
	includedThroughput = 125
)

// Items returns the items of one volume: its size, and performance that is paid for.
func (v Volume) Items() []Item {
	group := v.Type + " volumes"
	usage := map[string]string{"io1": "EBS:VolumeUsage.piops", "standard": "EBS:VolumeUsage"}[v.Type]
	if usage == "" {
		usage = "EBS:VolumeUsage." + v.Type
	}
	product := func(usage string) Product {
		return Product{Service: "AmazonEC2", Usage: usage, Attributes: "volumeApiName=" + v.Type}
	}
	all := []Item{
		{Group: group, Name: fmt.Sprintf("%s volume, %d GiB", v.Type, v.Size), Product: product(usage), Pieces: 1, Unit: GigabyteTime, Quantity: float64(v.Size)},
	}
	for _, tier := range v.tiers() {
		if n := min(v.IOPS, tier.upTo) - tier.from; n > 0 {
			all = append(
				all,
				Item{
					Group:    group,
					Name:     fmt.Sprintf("%s IOPS above %d", v.Type, tier.from),
					Product:  product("EBS:VolumeP-IOPS." + tier.usage),
					Unit:     IOPSTime,
					Quantity: float64(n),
				},
			)
		}
	}
	if n := v.Throughput - includedThroughput; n > 0 && v.Type == "gp3" {
		all = append(
			all,
			Item{
				Group:    group,
				Name:     fmt.Sprintf("gp3 throughput above %d MiB/s", includedThroughput),
				Product:  product("EBS:VolumeP-Throughput.gp3"),
				Unit:     MiBpsTime,
				Quantity: float64(n),
			},
		)
	}
	for i := range all {
		all[i].Assumed = v.Assumed
	}
	return all
}

// tier is a range of IOPS with one price.
type tier struct {
	usage      string
	from, upTo int64
}

// tiers returns the prices of IOPS of a volume type; none if they are included.
func (v Volume) tiers() []tier {
	const most = 1 << 30
	switch v.Type {
	case "gp3":
		return []tier{{"gp3", includedIOPS, most}}
	case "io1":
		return []tier{{"piops", 0, most}}
	case "io2":
		return []tier{{"io2", 0, 32_000}, {"io2.tier2", 32_000, 64_000}, {"io2.tier3", 64_000, most}}
	}
	return nil
}
