package pricing

import (
	_ "embed"
	"encoding/json"
	"strings"
	"sync"
)

// pricesJSON has the prices. It is not a copy of AWS's list, which has more than a gigabyte:
// see its field "about".
//
//go:embed prices.json
var pricesJSON []byte

// prices is the content of prices.json.
type prices struct {
	About     string
	Published string // date of the price list
	Regions   map[string]regional
}

// regional is the prices of a region, in its currency.
type regional struct {
	Prefix string             // of usage types
	Large  map[string]float64 // of the size large of an instance family, by the hour; other sizes cost multiples
	Types  map[string]float64 // of instance types that are no multiple of large
	GB     map[string]float64 // of a gigabyte of a volume type, by the month
	IOPS   map[string]float64 // of an I/O operation per second beyond what is included, by the month
	MiBps  float64            // of a MiB per second of gp3 beyond what is included, by the month
	NAT, Classic, Network, Application,
	Address, EKS, EKSExtended float64 // by the hour
	Secret, Parameter float64 // by the month
}

// list is read once: parsing it takes longer than a call.
//
//nolint:gochecknoglobals // a constant that needs parsing
var list = sync.OnceValue(func() (p prices) {
	if err := json.Unmarshal(pricesJSON, &p); err != nil {
		panic(err)
	}
	return p
})

// sizes returns the factors of the sizes of an instance family.
func sizes() map[string]float64 {
	return map[string]float64{
		"nano": 1.0 / 16, "micro": 1.0 / 8, "small": 1.0 / 4, "medium": 1.0 / 2, "large": 1, "xlarge": 2, "2xlarge": 4, "4xlarge": 8,
		"8xlarge": 16, "12xlarge": 24, "16xlarge": 32, "24xlarge": 48,
	}
}

// products returns the whole list, in all regions that it has.
//
//nolint:gochecknoglobals // computed once
var products = sync.OnceValue(func() (all []product) {
	for region, r := range list().Regions {
		all = append(all, r.products(region)...)
	}
	return all
})

// products returns the products of a region.
func (r regional) products(region string) (all []product) {
	add := func(service, family, usage, unit string, price float64, attributes ...string) {
		p := product{service: service, family: family, unit: unit, price: price, attributes: map[string]string{
			"regionCode": region, "locationType": "AWS Region", "usagetype": r.Prefix + usage, "servicecode": service,
		}}
		for _, a := range attributes {
			k, v, _ := strings.Cut(a, "=")
			p.attributes[k] = v
		}
		all = append(all, p)
	}
	for name, price := range r.instances() {
		machine := func(usage, system, tenancy, status string, price float64) {
			add("AmazonEC2", "Compute Instance", usage+":"+name, "Hrs", price,
				"instanceType="+name, "operatingSystem="+system, "tenancy="+tenancy, "preInstalledSw=NA", "capacitystatus="+status, "marketoption=OnDemand")
		}
		machine("BoxUsage", "Linux", "Shared", "Used", price)
		machine("BoxUsage", "Windows", "Shared", "Used", price*1.5)
		machine("UnusedBox", "Linux", "Shared", "UnusedCapacityReservation", price)
		machine("Reservation", "Linux", "Shared", "AllocatedCapacityReservation", 0)
		machine("DedicatedUsage", "Linux", "Dedicated", "Used", price*1.06) // the surcharge differs by type; most have 4 to 10 %
		machine("HostBoxUsage", "Linux", "Host", "Used", 0)
	}
	for name, price := range r.GB {
		usage := map[string]string{"standard": "EBS:VolumeUsage", "io1": "EBS:VolumeUsage.piops"}[name]
		if usage == "" {
			usage = "EBS:VolumeUsage." + name
		}
		add("AmazonEC2", "Storage", usage, "GB-Mo", price, "volumeApiName="+name)
	}
	for usage, price := range r.IOPS {
		name, _, _ := strings.Cut(strings.Replace(usage, "piops", "io1", 1), ".")
		add("AmazonEC2", "System Operation", "EBS:VolumeP-IOPS."+usage, "IOPS-Mo", price, "volumeApiName="+name)
	}
	add("AmazonEC2", "Provisioned Throughput", "EBS:VolumeP-Throughput.gp3", "GiBps-mo", r.MiBps*1024, "volumeApiName=gp3")
	add("AmazonEC2", "NAT Gateway", "NatGateway-Hours", "Hrs", r.NAT, "group=NGW:NatGateway", "operation=NatGateway")
	add("AmazonEC2", "NAT Gateway", "NatGateway-Bytes", "GB", r.NAT, "group=NGW:NatGateway", "operation=NatGateway")
	add("AmazonEC2", "NAT Gateway", "RegionalNatGateway-Hours", "Hrs", r.NAT*1.4, "group=NGW:NatGateway", "operation=RegionalNatGateway")
	for operation, b := range map[string]struct {
		family string
		price  float64
	}{"LoadBalancing": {"Load Balancer", r.Classic}, "LoadBalancing:Network": {"Load Balancer-Network", r.Network}, "LoadBalancing:Application": {"Load Balancer-Application", r.Application}} {
		add("AWSELB", b.family, "LoadBalancerUsage", "Hrs", b.price, "operation="+operation)
		add("AWSELB", b.family, "TS-LoadBalancerUsage", "Hrs", b.price/5, "operation="+operation)
		add("AWSELB", b.family, "Outposts-LoadBalancerUsage", "Hrs", b.price*1.1, "operation="+operation)
		add("AWSELB", "", "LCUUsage", "LCU-Hrs", 0.008, "operation="+operation)
	}
	r.addOthers(region, add)
	return all
}

// addOthers adds the products whose usage types have a prefix in all regions. In us-east-1,
// other usage types have none.
func (r regional) addOthers(region string, add func(service, family, usage, unit string, price float64, attributes ...string)) {
	prefix := ""
	if region == "us-east-1" {
		prefix = "USE1-"
	}
	add("AmazonVPC", "", prefix+"PublicIPv4:InUseAddress", "Hrs", r.Address, "group=VPCPublicIPv4Address")
	add("AmazonVPC", "", prefix+"PublicIPv4:IdleAddress", "Hrs", r.Address, "group=VPCPublicIPv4Address")
	add("AmazonEKS", "Compute", prefix+"AmazonEKS-Hours:perCluster", "Hours", r.EKS, "operation=CreateOperation")
	add("AmazonEKS", "Compute", prefix+"AmazonEKS-Hours:extendedSupport", "Hours", r.EKSExtended, "operation=ExtendedSupport")
	add("AWSSecretsManager", "Secret", prefix+"AWSSecretsManager-Secrets", "Secrets", r.Secret)
	add("AWSSystemsManager", "AWS Systems Manager", prefix+"PS-Advanced-Param-Tier1", "Parameter-Mo", r.Parameter)
}

// instances returns the prices of instance types.
func (r regional) instances() map[string]float64 {
	all := map[string]float64{}
	for family, price := range r.Large {
		for size, factor := range sizes() {
			all[family+"."+size] = price * factor
		}
	}
	for name, price := range r.Types {
		all[name] = price
	}
	return all
}

// OnDemand returns the price of an instance type with Linux by the hour, if the list has it.
func OnDemand(region, instanceType string) (price float64, ok bool) {
	price, ok = list().Regions[region].instances()[instanceType]
	return price, ok
}
