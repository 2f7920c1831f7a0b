"""Power switches and meters for testbeds of tailtrim: outlets by HTTP, SNMP, a person."""
