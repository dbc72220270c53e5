-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
--
-- Wireshark dissector of copyrpc's packets over UDP: the handshake and the sessions of datagram endpoints, with
-- the messages and calls in them. Fields have the names of the protocol documents (handshake.md,
-- datagram-protocol.md, ring-protocol.md), which define them. copyrpc_tracing(7) tells how to use it.
--
-- A handshake is recognised by its magic and its length. A session has 4 bits of magic only, so its packets are
-- taken if a handshake in the capture named both ends, the number and the tag, or if the user decodes the port as
-- copyrpc. All else is left to other dissectors.
--
-- Each structure is a table of fields (declare), from which the fields of Wireshark and the reader (read) are made.
-- What is learned from a packet is stored during the first pass, and looked up in later ones.

local copyrpc = Proto("copyrpc", "copyrpc")

local all_fields = {}
local malformed = ProtoExpert.new("copyrpc.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
local cut = ProtoExpert.new("copyrpc.cut", "Cut by the capture", expert.group.UNDECODED, expert.severity.NOTE)
local refused = ProtoExpert.new("copyrpc.refused", "Refused by the receiver", expert.group.PROTOCOL, expert.severity.WARN)
local repeated = ProtoExpert.new("copyrpc.repeated", "Sent again", expert.group.SEQUENCE, expert.severity.NOTE)

-- Meaning of values ---------------------------------------------------------------------------------------------------

local handshake_types = { "REQ", "ACK", "NAK", "HELLO", "WELCOME", "READY", "CROSSED", "BYE", "PING", "PONG", "BROKEN" }
local path_names = { [1] = "shm", [2] = "nic", [4] = "ud over a nic", [8] = "udp" }
local kinds = { [0] = "REQ", "RFR", "CR", "RESP" }
local request_types = { "BATCH", "REPLIES", "GET" }
local reply_types = { [0] = "at once", "waited", "refused", "sender had been away", "GAP", "KEPT" }
local frame_kinds = { "message", "call", "response" }
local operations = { [0] = "FAILBACK", "MSG", "PART", "CONT", "RNDV", "DLVR", "WRITE", "READ",
	"FETCH", "EXPOSE", "ATOMIC", "COLL", "RPC", "LEASE", "SYNC", "DONE" }
local operation_of = {}
for number, name in pairs(operations) do
	operation_of[name] = number
end
local errors = {
	[0] = "none", "EPERM", "ENOENT", [4] = "EINTR", [5] = "EIO", [7] = "E2BIG", [9] = "EBADF", [11] = "EAGAIN",
	[12] = "ENOMEM", [13] = "EACCES", [14] = "EFAULT", [16] = "EBUSY", [19] = "ENODEV", [22] = "EINVAL", [24] = "EMFILE",
	[28] = "ENOSPC", [38] = "ENOSYS", [42] = "ENOMSG", [61] = "ENODATA", [62] = "ETIME", [71] = "EPROTO", [75] = "EOVERFLOW",
	[90] = "EMSGSIZE", [92] = "ENOPROTOOPT", [95] = "EOPNOTSUPP", [98] = "EADDRINUSE", [99] = "EADDRNOTAVAIL",
	[100] = "ENETDOWN", [101] = "ENETUNREACH", [103] = "ECONNABORTED", [104] = "ECONNRESET", [105] = "ENOBUFS",
	[106] = "EISCONN", [107] = "ENOTCONN", [108] = "ESHUTDOWN", [110] = "ETIMEDOUT", [111] = "ECONNREFUSED",
	[112] = "EHOSTDOWN", [113] = "EHOSTUNREACH", [114] = "EALREADY", [115] = "EINPROGRESS", [121] = "EREMOTEIO",
	[125] = "ECANCELED", [129] = "EKEYREJECTED", [256] = "EOTHER", [257] = "ETOOSMALL", [258] = "EOPBADSTATE",
	[259] = "EAVAIL", [260] = "EBADFLAGS", [261] = "ENOEQ", [262] = "EDOMAIN", [263] = "ENOCQ", [264] = "ECRC",
	[265] = "ETRUNC", [266] = "ENOKEY", [267] = "ENOAV", [268] = "EOVERRUN", [269] = "ENORX", [270] = "ENOMR",
	[0xFFFFFFFE] = "exposed", [0xFFFFFFFF] = "not possible, use another way",
}
local status_names = setmetatable({ [0xFFFFFFFE] = "kept, DONE follows", [0xFFFFFFFF] = "send parts" }, { __index = errors })

-- Structures ----------------------------------------------------------------------------------------------------------

local makers = { ProtoField.uint8, ProtoField.uint16, ProtoField.uint24, ProtoField.uint32 }

-- field GROUP {NAME, BYTES, ...}: makes the field copyrpc.GROUP.NAME. Options: names (of values), hex, kind (bytes or
-- text), mask and at (offset, where it is not behind the field before), value (function of the bytes), zero (reserved).
local function field(group, f)
	local name = "copyrpc." .. group .. "." .. f[1]
	local base = (f.hex or f.zero) and base.HEX or base.DEC
	if f.kind == "text" then
		f.proto = ProtoField.string(name, f[1])
	elseif f.kind == "bytes" or f[2] > 8 or (f[2] == 3 and f.zero) then
		f.kind = "bytes"
		f.proto = ProtoField.bytes(name, f[1])
	elseif f[2] > 4 then
		f.kind = "long"
		f.proto = ProtoField.uint64(name, f[1], base)
	else
		f.proto = makers[f[2]](name, f[1], base, f.names, f.mask)
	end
	table.insert(all_fields, f.proto)
end

-- low_44_bits RANGE: Wireshark's masks have 32 bits in Lua.
local function low_44_bits(range)
	return range:le_uint64():band(UInt64.new(0xFFFFFFFF, 0xFFF))
end

-- declare GROUP, TITLE, FIELDS: a structure. Its length is that of its fields.
local function declare(group, title, fields)
	local at = 0
	for _, f in ipairs(fields) do
		field(group, f)
		f.at = f.at or at
		at = f.at + f[2]
	end
	return { title = title, fields = fields, len = at }
end

local head_s = declare("handshake", "Head", {
	{ "magic", 4, hex = true }, { "version", 1 }, { "type", 1, names = handshake_types }, { "len", 2 },
	{ "nonce", 8, hex = true }, { "src_inc", 8, hex = true }, { "dst_inc", 8, hex = true }, { "features", 8, hex = true },
})
local mac_s = declare("handshake", "MAC", { { "mac", 32 } })
local req_s = declare("req", "REQ", { { "paths", 4, hex = true }, { "name", 24 }, { "zero", 100, zero = true } })
local ack_s = declare("ack", "ACK", {
	{ "cookie", 16 }, { "name", 32, kind = "text" }, { "paths", 4, hex = true }, { "zero", 4, zero = true },
})
local nak_s = declare("nak", "NAK", { { "error", 4, names = errors }, { "text_len", 2 }, { "zero", 2, zero = true } })
local hello_s = declare("hello", "HELLO", { { "cookie", 16 } })
local address_s = declare("address", "Address", {
	{ "family", 1 }, { "zero", 1, zero = true }, { "port", 2 }, { "scope", 4 }, { "ip", 16 },
})
local parameters_s = declare("parameters", "Parameters", {
	{ "engine_len", 2 }, { "device_len", 2 }, { "descriptors", 1 }, { "path", 1, names = path_names },
	{ "identity_len", 2 },
})
local identity_s = declare("identity", "Identity", { { "rank", 4 }, { "pid", 4 } })
local ring_parameters_s = declare("ring_parameters", "Ring", {
	{ "version", 4 }, { "features", 4, hex = true }, { "grant_max", 8 },
})
local session_parameters_s = declare("session_parameters", "Session", {
	{ "version", 4 }, { "session", 2 }, { "credits", 2 }, { "token", 8, hex = true }, { "mtu", 4 }, { "zero", 4, hex = true },
})
local udp_endpoint_s = declare("udp_endpoint", "Datagram endpoint", {
	{ "version", 1 }, { "family", 1 }, { "port", 2 }, { "mtu", 4 }, { "ip", 16 },
})
local header_s = declare("header", "Header", {
	{ "req_type", 1 }, { "msg_size", 3 }, { "session", 2 }, { "kind", 1, mask = 0x3, names = kinds },
	{ "pkt_num", 2, mask = 0xFFFC, at = 6 }, { "req_num", 6, at = 8, value = low_44_bits },
	{ "magic", 1, mask = 0xF0, at = 13, hex = true }, { "tag", 2, at = 14, hex = true },
})
local batch_s = declare("batch", "Batch", { { "seq", 4 }, { "ack", 4 } })
local get_s = declare("get", "GET", {
	{ "addr", 8, hex = true }, { "key", 8, hex = true }, { "len", 4 }, { "more", 4 },
})
local frame_s = declare("frame", "Frame", { { "len", 3 }, { "kind", 1, names = frame_kinds }, { "word", 4, hex = true } })
local call_s = declare("call", "Call", { { "resp_max", 4 } })
local operation_s = declare("operation", "Operation", {
	{ "operation", 4, mask = 0xF, names = operations }, { "flags", 4, mask = 0x70, at = 0, hex = true },
	{ "zero", 4, mask = 0xFFFFFF80, at = 0, hex = true },
})
local flags_s = declare("flags", "Flags", {
	{ "tag", 4, mask = 0x10 }, { "data32", 4, mask = 0x20, at = 0 }, { "data64", 4, mask = 0x40, at = 0 },
})
local rpc_s = declare("rpc", "Operation", {
	{ "operation", 4, mask = 0xF, names = operations }, { "flags", 4, mask = 0xF0, at = 0, hex = true },
	{ "resp_max", 4, mask = 0x7FFFFF00, at = 0 }, { "zero", 4, mask = 0x80000000, at = 0 },
})
local tag_s = declare("operation", "Tag", { { "tag", 8, hex = true } })
local data32_s = declare("operation", "Remote CQ data", { { "data32", 4, hex = true } })
local data64_s = declare("operation", "Remote CQ data", { { "data64", 8, hex = true } })
local part_s = declare("part", "First part", { { "total_len", 8 }, { "send_id", 4 }, { "zero", 4, zero = true } })
local cont_s = declare("cont", "Part", {
	{ "offset", 8 }, { "id", 4 }, { "kind", 4, names = { [0] = "id is a send_id", "id is a recv_id" } },
})
local rndv_s = declare("rndv", "Rendezvous", {
	{ "total_len", 8 }, { "addr", 8, hex = true }, { "key", 8, hex = true }, { "send_id", 4 }, { "zero", 4, zero = true },
})
local sync_s = declare("sync", "Match-complete message", { { "send_id", 4 } })
local tags_s = declare("tags", "Contact for tag matching by devices", {
	{ "kind", 2, names = { "hello", "ready" } }, { "id", 2 }, { "zero", 4, zero = true },
})
local status_s = declare("status", "Status", { { "status", 4, names = status_names }, { "recv_id", 4 }, { "len", 8 } })
local done_s = declare("done", "End of a kept message", {
	{ "send_id", 4 }, { "status", 4, names = status_names }, { "recv_id", 4 }, { "zero", 4, zero = true },
})
local failback_s = declare("failback", "End for a better path", {
	{ "kind", 4, names = { "ask", "yes", "no", "later" } }, { "paths", 4, hex = true },
})
local access_s = declare("access", "Access", {
	{ "addr", 8, hex = true }, { "key", 8, hex = true }, { "len", 8 }, { "offset", 8 }, { "total", 8 },
})
local access_response_s = declare("access_response", "Response", {
	{ "status", 4, names = errors }, { "zero", 4, zero = true }, { "offset", 8 },
})
local fetch_s = declare("fetch", "Source", { { "addr", 8, hex = true }, { "key", 8, hex = true } })
local exposure_s = declare("exposure", "Exposure", {
	{ "addr", 8, hex = true }, { "key", 8, hex = true }, { "exposure_id", 4 }, { "zero", 4, zero = true },
})
local expose_s = declare("expose", "End of an exposure", { { "exposure_id", 4 }, { "status", 4, names = errors } })
local atomic_s = declare("atomic", "Atomic", {
	{ "addr", 8, hex = true }, { "key", 8, hex = true }, { "first", 4 }, { "total", 4 }, { "count", 2 }, { "kind", 1 },
	{ "type", 1 }, { "op", 1 }, { "zero", 3, kind = "bytes", zero = true },
})
local atomic_response_s = declare("atomic_response", "Response", { { "status", 4, names = errors }, { "first", 4 } })
local coll_s = declare("coll", "Collective", {
	{ "group", 8, hex = true }, { "seq", 4 }, { "from", 4 }, { "len", 8 }, { "off", 8 },
	{ "what", 4, names = { "PUT", "READ", "ABORT" } }, { "status", 4, names = errors },
})
local coll_response_s = declare("coll_response", "Response", {
	{ "status", 4, names = errors }, { "zero", 4, zero = true }, { "off", 8 },
})
local lease_s = declare("lease", "Lease", {
	{ "key", 8, hex = true }, { "kind", 4, names = { [0] = "REQUEST", "REVOKE" } }, { "zero", 4, zero = true },
})
local lease_response_s = declare("lease_response", "Response", {
	{ "status", 4, names = errors }, { "rights", 4, hex = true }, { "base", 8, hex = true }, { "len", 8 },
	{ "addr", 8, hex = true }, { "rkey", 8, hex = true },
})

-- single NAME, MAKER, ...: makes the field copyrpc.NAME.
local function single(name, maker, ...)
	local f = maker("copyrpc." .. name, ...)
	table.insert(all_fields, f)
	return f
end

local handshake_f = single("handshake", ProtoField.none, "Handshake")
local packet_f = single("packet", ProtoField.none, "Packet of a session")
local slot_f = single("slot", ProtoField.uint8, "Slot")
local text_f = single("nak.text", ProtoField.string, "text")
local engine_f = single("parameters.engine", ProtoField.bytes, "engine")
local device_f = single("parameters.device", ProtoField.bytes, "device")
local host_f = single("identity.host", ProtoField.string, "host")
local data_f = single("data", ProtoField.bytes, "Data")
local padding_f = single("padding", ProtoField.bytes, "Padding")
local request_in_f = single("request_in", ProtoField.framenum, "Request in", base.NONE, frametype.REQUEST)
local response_in_f = single("response_in", ProtoField.framenum, "Response in", base.NONE, frametype.RESPONSE)
local round_trip_f = single("round_trip", ProtoField.double, "Seconds since the request was first sent")

copyrpc.fields = all_fields
copyrpc.experts = { malformed, cut, refused, repeated }

-- Reading -------------------------------------------------------------------------------------------------------------

local bad_seen -- what is dissected now has a fault

-- mark NODE, TEXT: records a fault and goes on.
local function mark(node, text)
	bad_seen = true
	node:add_proto_expert_info(malformed, text)
end

-- stop_bad TEXT: gives up what is being read: the rest has no meaning.
local function stop_bad(text)
	error({ bad = text }, 0)
end

-- need TVB, AT, LEN, LIMIT, NAME: returns if LEN bytes are before LIMIT, and captured.
local function need(tvb, at, len, limit, name)
	if at + len > limit then
		stop_bad(name .. " is incomplete")
	end
	if at + len > tvb:len() then
		error({ cut = true }, 0)
	end
end

-- guarded NODE, FUNCTION: calls it; faults of the packet are marked at NODE, others are errors of this script.
local function guarded(node, run)
	local good, why = pcall(run)
	if good then
		return
	end
	if type(why) ~= "table" then
		error(why, 0)
	elseif why.cut then
		node:add_proto_expert_info(cut)
	else
		mark(node, why.bad)
	end
end

local function is_zero(range)
	local bytes = range:bytes()
	for i = 0, bytes:len() - 1 do
		if bytes:get_index(i) ~= 0 then
			return false
		end
	end
	return true
end

local function add_field(node, f, range)
	local item
	if f.kind == "bytes" or f.kind == "text" then
		item = node:add(f.proto, range)
	elseif f.value then
		item = node:add_le(f.proto, range, f.value(range))
	else
		item = node:add_le(f.proto, range)
	end
	if f.zero and not is_zero(range) then
		mark(item, "Reserved bytes are not zero")
	end
	return item
end

-- read TVB, AT, LIMIT, STRUCT, NODE, FLAT: adds all fields, in a tree of their own unless FLAT. Returns the values of
-- those of up to four bytes (without their masks), their items, and the tree.
local function read(tvb, at, limit, s, node, flat)
	local values, items = {}, {}
	need(tvb, at, s.len, limit, s.title)
	if not flat then
		node = node:add(copyrpc, tvb(at, s.len), s.title)
	end
	for _, f in ipairs(s.fields) do
		local range = tvb(at + f.at, f[2])
		items[f[1]] = add_field(node, f, range)
		if f.kind == nil then
			values[f[1]] = range:le_uint()
		end
	end
	return values, items, node
end

local function add_rest(node, f, tvb, at, limit)
	if limit > at then
		need(tvb, at, limit - at, limit, "Data")
		node:add(f, tvb(at, limit - at))
	end
end

-- bits VALUE, FROM, COUNT: these bits of a number of up to 32.
local function bits(value, from, count)
	return math.floor(value / 2 ^ from) % 2 ^ count
end

local function is_one_bit(value)
	while value > 1 and value % 2 == 0 do
		value = value / 2
	end
	return value == 1
end

-- Sessions that handshakes announced ----------------------------------------------------------------------------------

-- A link is one session: ends[1] connected, ends[2] accepted. requests and calls are those of each end.
local links_by_nonce, ends_by_port, links_by_address, results

local function reset()
	links_by_nonce, ends_by_port, links_by_address, results = {}, {}, {}, {}
end

local function new_link()
	return { ends = {}, requests = { {}, {} }, calls = { {}, {} } }
end

-- learn NONCE, INDEX, ADDRESS, PORT, SESSION, TAG, MTU: an end of the session whose handshake has this nonce.
local function learn(nonce, index, address, port, session, tag, mtu)
	local link = links_by_nonce[nonce] or new_link()
	links_by_nonce[nonce] = link
	if link.ends[index] then
		return
	end
	link.ends[index] = { address = address, port = port, session = session, tag = tag, mtu = mtu }
	ends_by_port[port] = ends_by_port[port] or {}
	table.insert(ends_by_port[port], { link = link, index = index })
end

local function is_at(one, address, port)
	return one ~= nil and one.port == port and one.address == address
end

-- find_link TVB, PINFO: returns the session between these two sockets and the index of the sender, preferring the one
-- with the number and tag of the first packet.
local function find_link(tvb, pinfo)
	local link, sender
	for _, entry in ipairs(ends_by_port[pinfo.dst_port] or {}) do
		local own, other = entry.link.ends[entry.index], entry.link.ends[3 - entry.index]
		if is_at(own, pinfo.dst, pinfo.dst_port) and is_at(other, pinfo.src, pinfo.src_port) then
			link, sender = entry.link, 3 - entry.index
			if tvb:len() >= 16 and tvb(4, 2):le_uint() == own.session and tvb(14, 2):le_uint() == own.tag then
				return link, sender
			end
		end
	end
	return link, sender
end

-- assumed_link PINFO: the session of two sockets without a handshake in the capture, and the index of the sender.
local function assumed_link(pinfo)
	local here = tostring(pinfo.src) .. " " .. pinfo.src_port
	local there = tostring(pinfo.dst) .. " " .. pinfo.dst_port
	local name = here < there and here .. " " .. there or there .. " " .. here
	links_by_address[name] = links_by_address[name] or new_link()
	return links_by_address[name], here < there and 1 or 2
end

-- Handshake -----------------------------------------------------------------------------------------------------------

local HEAD_LEN, MAC_LEN, BARE_LEN, HANDSHAKE_MAX = 40, 32, 72, 696
local MAGIC = 0x4D435243

-- Least and greatest length of each type, and whether it may have features.
local forms = {
	{ 200, 200, features = true }, { 128, 128, features = true }, { 80, 200 }, { 120, 696, features = true }, { 80, 656 },
	{ 72, 72 }, { 72, 72 }, { 72, 72 }, { 72, 72 }, { 72, 72 }, { 72, 72 },
}

local function is_handshake(tvb)
	return tvb:len() >= 8 and tvb(0, 4):le_uint() == MAGIC
end

local function ip_text(tvb, at, family)
	return tostring(family == 4 and tvb(at, 4):ipv4() or tvb(at, 16):ipv6())
end

local function read_address(tvb, at, limit, node)
	local v, items, tree = read(tvb, at, limit, address_s, node)
	local is_4 = v.family == 4
	if not is_4 and v.family ~= 6 then
		mark(items.family, "Neither 4 nor 6")
	else
		tree:append_text(": " .. ip_text(tvb, at + 8, v.family) .. ", port " .. v.port)
	end
	if v.port == 0 then
		mark(items.port, "No port")
	end
	if is_4 and (v.scope ~= 0 or not is_zero(tvb(at + 12, 12))) then
		mark(items.ip, "More than an IPv4 address")
	end
end

-- A handshake's parameters of a session over UDP, as far as they have been read.
local function learn_end(tvb, pinfo, engine, device, index)
	if pinfo.visited or pinfo.in_error_pkt then
		return
	end
	local family = tvb(device + 1, 1):uint()
	local address = family == 4 and tvb(device + 8, 4):ipv4() or tvb(device + 8, 16):ipv6()
	learn(tvb(8, 8):bytes():tohex(), index, address, tvb(device + 2, 2):le_uint(), tvb(engine + 4, 2):le_uint(),
		tvb(engine + 8, 2):le_uint(), tvb(engine + 16, 4):le_uint())
end

local function read_udp_endpoint(tvb, at, limit, node)
	local v, items, tree = read(tvb, at, limit, udp_endpoint_s, node)
	if v.version ~= 1 or (v.family ~= 4 and v.family ~= 6) or v.port == 0 or v.mtu < 512 or v.mtu > 65535 then
		tree:add_proto_expert_info(refused, "Version, family, port or MTU")
		return false
	end
	tree:append_text(": " .. ip_text(tvb, at + 8, v.family) .. ", port " .. v.port)
	return true
end

local function read_session_parameters(tvb, at, limit, node)
	local v, _, tree = read(tvb, at, limit, session_parameters_s, node)
	if v.version ~= 3 or v.credits == 0 or v.zero ~= 0 then
		tree:add_proto_expert_info(refused, "Version, credits or reserved bytes")
		return false
	end
	return true
end

-- read_engine ...: the bytes of engine and device, which depend on the path. Their lengths are those that their
-- receiver accepts, or they stay bytes.
local function read_engine(tvb, pinfo, at, v, node, index)
	local device = at + v.engine_len
	local limit = device + v.device_len
	local is_ring, is_udp = v.path == 1 or v.path == 2, v.path == 8
	local engine_s = is_ring and ring_parameters_s or session_parameters_s
	need(tvb, at, v.engine_len + v.device_len, limit, "Parameters")
	if v.engine_len ~= engine_s.len then
		add_rest(node, engine_f, tvb, at, device)
		node:add_proto_expert_info(refused, "Length of the engine's parameters")
		is_udp = false
	elseif is_ring then
		read(tvb, at, device, engine_s, node)
	else
		is_udp = read_session_parameters(tvb, at, device, node) and is_udp
	end
	if is_udp and v.device_len == udp_endpoint_s.len then
		if read_udp_endpoint(tvb, device, limit, node) then
			learn_end(tvb, pinfo, at, device, index)
		end
	else
		add_rest(node, device_f, tvb, device, limit)
	end
end

-- read_identity ...: the identity of the sender. A rank of 2^32 - 1 is unknown.
local function read_identity(tvb, at, limit, node)
	local v, items, tree = read(tvb, at, limit, identity_s, node)
	if v.rank > 0x7FFFFFFF and v.rank ~= 0xFFFFFFFF then
		mark(items.rank, "No rank")
	end
	if v.pid > 0x7FFFFFFF then
		mark(items.pid, "No process")
	end
	if at + identity_s.len < limit then
		need(tvb, at + identity_s.len, limit - at - identity_s.len, limit, "Host")
		local range = tvb(at + identity_s.len, limit - at - identity_s.len)
		local item = tree:add(host_f, range)
		for i = 0, range:len() - 1 do
			if not string.char(range(i, 1):uint()):match("[%w._-]") then
				mark(item, "Not the name of a host")
				return
			end
		end
	end
end

local function read_parameters(tvb, pinfo, at, limit, node, index)
	local v, items, tree = read(tvb, at, limit, parameters_s, node)
	if not is_one_bit(v.path) then
		mark(items.path, "Not one path")
	end
	if v.engine_len > 64 or v.device_len > 512 or v.descriptors > 4 or v.identity_len > 71 then
		stop_bad("A length or number of the parameters is beyond its limit")
	end
	if at + parameters_s.len + v.engine_len + v.device_len + v.identity_len ~= limit then
		stop_bad("The lengths of the parameters do not add up")
	end
	if v.identity_len > 0 and index == 1 and tvb(32, 1):uint() % 2 == 0 then
		mark(items.identity_len, "An identity without its feature")
	end
	read_engine(tvb, pinfo, at + parameters_s.len, v, tree, index)
	if v.identity_len > 0 then
		read_identity(tvb, limit - v.identity_len, limit, tree)
	end
end

-- read_req ...: the name that is looked for is an address, or zeros.
local function read_req(tvb, at, limit, node)
	read(tvb, at, limit, req_s, node)
	if not is_zero(tvb(at + 4, 24)) then
		read_address(tvb, at + 4, limit, node)
	end
end

local function read_ack(tvb, at, limit, node)
	local _, items = read(tvb, at, limit, ack_s, node)
	if not tvb(at + 16, 32):string():match("^[0-9a-f]+$") or #tvb(at + 16, 32):string() ~= 32 then
		mark(items.name, "Not 32 hexadecimal digits")
	end
end

local function read_nak(tvb, at, limit, node)
	local v, items, tree = read(tvb, at, limit, nak_s, node)
	if v.error == 0 or v.error > 1023 then
		mark(items.error, "No error")
	end
	if at + nak_s.len + v.text_len ~= limit then
		stop_bad("The length of the text does not match")
	end
	need(tvb, at + nak_s.len, v.text_len, limit, "Text")
	if v.text_len > 0 then
		local range = tvb(at + nak_s.len, v.text_len)
		local item = tree:add(text_f, range)
		for i = 0, v.text_len - 1 do
			local c = range(i, 1):uint()
			if c < 32 or c > 126 then
				mark(item, "Not printable")
				break
			end
		end
	end
end

local bodies = {
	function(tvb, _, at, limit, node) read_req(tvb, at, limit, node) end,
	function(tvb, _, at, limit, node) read_ack(tvb, at, limit, node) end,
	function(tvb, _, at, limit, node) read_nak(tvb, at, limit, node) end,
	function(tvb, pinfo, at, limit, node)
		read(tvb, at, limit, hello_s, node)
		read_address(tvb, at + 16, limit, node)
		read_parameters(tvb, pinfo, at + 40, limit, node, 1)
	end,
	function(tvb, pinfo, at, limit, node) read_parameters(tvb, pinfo, at, limit, node, 2) end,
}

-- check_head ...: what the head of a packet of this version must have. Returns its form.
local function check_head(tvb, v, items, len)
	local form = forms[v.type]
	if form == nil then
		stop_bad("Unknown type")
	end
	if len < form[1] or len > form[2] then
		stop_bad("No packet of this type has this length")
	end
	if is_zero(tvb(24, 8)) ~= (v.type == 1) then
		mark(items.dst_inc, v.type == 1 and "REQ names no receiver" or "The receiver is missing")
	end
	if not form.features and not is_zero(tvb(32, 8)) then
		mark(items.features, "This type has none")
	end
end

local function read_handshake(tvb, pinfo, node, len)
	if len < BARE_LEN or len > HANDSHAKE_MAX then
		mark(node, "No packet has this length")
	end
	local v, items = read(tvb, 0, len, head_s, node)
	if v.len ~= len then
		stop_bad("The length in the packet is not its own")
	end
	if is_zero(tvb(8, 8)) or is_zero(tvb(16, 8)) then
		mark(node, "Without nonce or sender")
	end
	if v.version == 0 and v.type ~= 3 then
		mark(items.version, "No version")
	elseif v.version ~= 1 then
		items.version:add_proto_expert_info(refused, "Another version")
	end
	if v.version == 1 or v.type == 3 then
		check_head(tvb, v, items, len)
		if bodies[v.type] then
			bodies[v.type](tvb, pinfo, HEAD_LEN, len - MAC_LEN, node)
		end
	end
	read(tvb, len - MAC_LEN, len, mac_s, node, true)
end

local function dissect_handshake(tvb, pinfo, tree)
	local len = tvb:reported_len()
	local node = tree:add(handshake_f, tvb(0, tvb:len()))
	local name = tvb:len() > 5 and handshake_types[tvb(5, 1):uint()] or "unknown type"
	node:append_text(": " .. name)
	pinfo.cols.info = "Handshake " .. name
	guarded(node, function() read_handshake(tvb, pinfo, node, len) end)
end

-- Messages and calls --------------------------------------------------------------------------------------------------

-- Own fields of each operation: as a call, one-way, and whether bytes may follow.
local own_fields = {
	MSG = { oneway = {}, bytes = true },
	PART = { oneway = { part_s }, bytes = true },
	CONT = { call = { cont_s }, oneway = { cont_s }, bytes = true },
	RNDV = { call = { rndv_s } },
	DLVR = { call = {}, bytes = true },
	SYNC = { call = { sync_s }, oneway = { tags_s }, bytes = true }, -- one-way: TAGS
	DONE = { oneway = { done_s } },
	FAILBACK = { oneway = { failback_s } },
	WRITE = { call = { access_s }, bytes = true },
	READ = { call = { access_s } },
	FETCH = { call = { access_s, fetch_s } },
	EXPOSE = { call = { access_s }, oneway = { expose_s } },
	ATOMIC = { call = { atomic_s }, bytes = true },
	COLL = { call = { coll_s }, bytes = true },
	LEASE = { call = { lease_s } },
}

-- read_operation ...: the word at WORD_AT and what it announces between AT and LIMIT. Returns the operation.
local function read_operation(tvb, word_at, at, limit, is_call, node)
	local word = tvb(word_at, 4):le_uint()
	local number = bits(word, 0, 4)
	local name = operations[number]
	if number == operation_of.RPC then
		local _, items = read(tvb, word_at, word_at + 4, rpc_s, node)
		if bits(word, 4, 4) ~= 0 or bits(word, 31, 1) ~= 0 or not is_call then
			mark(items.operation, "A call without flags only")
		end
		add_rest(node, data_f, tvb, at, limit)
		return name
	end
	local _, _, word_node = read(tvb, word_at, word_at + 4, operation_s, node)
	read(tvb, word_at, word_at + 4, flags_s, word_node, true)
	local own = own_fields[name]
	local structs = own and (is_call and own.call or not is_call and own.oneway)
	if not structs then
		stop_bad(name and name .. (is_call and " as a call" or " as a one-way message") or "Unknown operation")
	end
	if bits(word, 7, 25) ~= 0 or bits(word, 5, 2) == 3 then
		stop_bad("Unknown bits of the operation")
	end
	for i, s in ipairs({ tag_s, data32_s, data64_s }) do
		if bits(word, 3 + i, 1) == 1 then
			read(tvb, at, limit, s, node, true)
			at = at + s.len
		end
	end
	for _, s in ipairs(structs) do
		read(tvb, at, limit, s, node)
		at = at + s.len
	end
	if at ~= limit and not own.bytes then
		mark(node, "Bytes behind the fields")
	end
	add_rest(node, data_f, tvb, at, limit)
	return name
end

-- read_reply ...: the response to a call of this operation (nil: the call is not in the capture).
local function read_reply(tvb, at, limit, operation, node)
	local function take(s)
		local v = read(tvb, at, limit, s, node)
		at = at + s.len
		return v
	end
	if operation == "RNDV" or operation == "DLVR" or operation == "SYNC" or operation == "CONT" then
		take(status_s)
	elseif operation == "ATOMIC" then
		take(atomic_response_s)
	elseif operation == "COLL" then
		take(coll_response_s)
	elseif operation == "LEASE" and limit > at then
		take(lease_response_s)
	elseif operation == "WRITE" or operation == "READ" or operation == "FETCH" or operation == "EXPOSE" then
		local v = take(access_response_s)
		if operation == "EXPOSE" and v.status == 0xFFFFFFFE then
			take(exposure_s)
		end
	end
	add_rest(node, data_f, tvb, at, limit)
end

-- A call is remembered by its id until another one has it: an id returns long after its response.
local function remember_call(link, caller, id, operation, pinfo)
	if pinfo.visited then
		return
	end
	local calls = link.calls[caller]
	calls[id] = calls[id] or {}
	table.insert(calls[id], { frame = pinfo.number, operation = operation })
end

local function find_call(link, caller, id, frame)
	local calls, found = link.calls[caller][id] or {}, nil
	for _, call in ipairs(calls) do
		found = call.frame <= frame and call.operation or found
	end
	return found
end

local function count(counts, name)
	if not counts[name] then
		counts[name] = 0
		table.insert(counts, name)
	end
	counts[name] = counts[name] + 1
end

-- read_frame ...: one frame. Returns the offset of the next one.
local function read_frame(tvb, at, limit, where, node, counts)
	need(tvb, at, frame_s.len, limit, "Frame")
	local len, kind, word = tvb(at, 3):le_uint(), tvb(at + 3, 1):uint(), tvb(at + 4, 4):le_uint()
	local head = kind == 2 and 12 or 8
	local span = math.floor((head + len + 7) / 8) * 8
	if not frame_kinds[kind] or at + span > limit or (kind == 2 and len < 4) then
		read(tvb, at, limit, frame_s, node)
		stop_bad("Frame of an unknown kind, or longer than its batch")
	end
	local _, _, tree = read(tvb, at, limit, frame_s, node)
	need(tvb, at, span, limit, "Frame")
	tree:set_len(span)
	if kind ~= 3 and where.replies_only then
		stop_bad("Only responses may be here")
	end
	local data, stop = at + head, at + head + len
	local name
	if kind == 1 then
		name = read_operation(tvb, at + 4, data, stop, false, tree)
	elseif kind == 2 then
		read(tvb, at + 8, limit, call_s, tree, true)
		name = read_operation(tvb, data, data + 4, stop, true, tree)
		remember_call(where.link, where.sender, word, name, where.pinfo)
	else
		name = find_call(where.link, 3 - where.sender, word, where.pinfo.number)
		read_reply(tvb, data, stop, name, tree)
		name = "response" .. (name and " to " .. name or "")
	end
	if at + span > stop then
		tree:add(padding_f, tvb(stop, at + span - stop))
	end
	tree:append_text(": " .. name)
	count(counts, name)
	return at + span
end

-- read_batch ...: numbers and frames of a BATCH, of REPLIES, or of the response to a BATCH.
local function read_batch(tvb, at, limit, where, node)
	local v, _, tree = read(tvb, at, limit, batch_s, node)
	local counts, info = {}, {}
	if where.replies_only and (v.seq ~= 0 or v.ack ~= 0) then
		tree:append_text(" (numbers without meaning)")
	end
	at = at + batch_s.len
	while at < limit do
		at = read_frame(tvb, at, limit, where, node, counts)
	end
	for _, name in ipairs(counts) do
		table.insert(info, (counts[name] > 1 and counts[name] .. " " or "") .. name)
	end
	where.info = (where.replies_only and "" or " seq " .. v.seq .. " ack " .. v.ack) .. ": " .. table.concat(info, ", ")
end

local function read_get(tvb, at, limit, where, node)
	local v = read(tvb, at, limit, get_s, node)
	if limit ~= at + get_s.len then
		mark(node, "Bytes behind the GET")
	end
	where.info = " " .. v.len .. " bytes"
end

-- Sessions ------------------------------------------------------------------------------------------------------------

local REQ, RFR, CR, RESP = 0, 1, 2, 3
local BATCH, REPLIES, GET = 1, 2, 3
local HDR_LEN, BODY_MAX = 16, 131072

-- slot_takes SLOT, TYPE: whether requests of this type use the slot.
local function slot_takes(slot, kind)
	return slot < 5 and kind == BATCH or (slot == 5 or slot == 6) and kind == GET or slot == 7 and kind == REPLIES
end

-- result PINFO, AT: what the first pass found out about the packet at this offset of the frame.
local function result(pinfo, at)
	local frame = results[pinfo.number] or {}
	results[pinfo.number] = frame
	frame[at] = frame[at] or {}
	return frame[at]
end

-- store_part ...: a part of a request. Returns its bytes if it is the last one that was missing.
local function store_part(request, tvb, at, limit, pkt_num, size)
	request.parts = request.parts or {}
	if request.whole or size > BODY_MAX or limit > tvb:len() or request.parts[pkt_num] then
		return nil
	end
	request.parts[pkt_num] = tvb(at, limit - at):bytes()
	local first = request.parts[0]
	if first == nil or first:len() == 0 then
		return nil
	end
	local body = ByteArray.new()
	for i = 0, math.ceil(size / first:len()) - 1 do
		if request.parts[i] == nil then
			return nil
		end
		body = body .. request.parts[i]
	end
	request.whole, request.parts = true, nil
	return body:len() == size and body or nil
end

-- note_packet ...: first pass: finds the request of a packet, its parts, and whether it was sent before.
local function note_packet(h, tvb, pinfo, at, limit)
	local r = h.result
	local number = tvb(at + 8, 6):le_uint64():tohex():sub(-11)
	local requests = h.link.requests[h.client]
	local name = h.kind .. " " .. h.pkt_num
	local request = requests[number] or { seen = {} }
	requests[number] = request
	r.request = request
	if h.kind == REQ then
		request.type = request.type or h.req_type
		request.frame, request.time = request.frame or pinfo.number, request.time or pinfo.rel_ts
		if limit - at - HDR_LEN < h.msg_size then
			r.body = store_part(request, tvb, at + HDR_LEN, limit, h.pkt_num, h.msg_size)
		end
	elseif h.kind == RESP and not request.response then
		request.response = pinfo.number
		r.round_trip = request.time and pinfo.rel_ts - request.time
	end
	if h.kind ~= CR or h.req_type < 4 then
		r.repeated = request.seen[name] and request.seen[name] ~= pinfo.number
		request.seen[name] = request.seen[name] or pinfo.number
	end
end

local function read_request(h, tvb, at, limit, node)
	if not slot_takes(h.slot, h.req_type) then
		stop_bad("This slot has no requests of this type")
	end
	if h.req_type == GET then
		read_get(tvb, at, limit, h.where, node)
	else
		h.where.replies_only = h.req_type == REPLIES
		read_batch(tvb, at, limit, h.where, node)
	end
end

local function read_req(h, tvb, pinfo, at, limit, node)
	local len = limit - at
	if len > h.msg_size then
		stop_bad("Longer than the request")
	elseif len < h.msg_size then
		add_rest(node, data_f, tvb, at, limit)
		if len == 0 then
			stop_bad("A part without bytes")
		end
		if h.result.body then
			local whole = h.result.body:tvb("Request")
			local body_node = node:add(copyrpc, whole(), "Request of several packets")
			read_request(h, whole, 0, whole:len(), body_node)
		end
	elseif h.pkt_num ~= 0 then
		stop_bad("A part beyond the request")
	else
		read_request(h, tvb, at, limit, node)
	end
end

local function read_resp(h, tvb, at, limit, node)
	local request = h.result.request or {}
	if limit - at > h.msg_size then
		stop_bad("Longer than the response")
	end
	if request.frame then
		node:add(request_in_f, request.frame):set_generated()
	end
	if h.result.round_trip then
		node:add(round_trip_f, h.result.round_trip):set_generated()
	end
	if request.type == BATCH and limit > at then
		h.where.replies_only = true
		read_batch(tvb, at, limit, h.where, node)
	elseif request.type == REPLIES and limit > at then
		stop_bad("Bytes in the response to REPLIES")
	else
		add_rest(node, data_f, tvb, at, limit)
	end
end

local function packet_name(h)
	local names = (h.kind == REQ or h.kind == RFR) and request_types or reply_types
	local what = names[h.req_type]
	return kinds[h.kind] .. " " .. (what or "type " .. h.req_type) .. (h.pkt_num > 0 and " packet " .. h.pkt_num or "")
end

local function read_header(tvb, pinfo, at, limit, node, link, sender)
	local v, items = read(tvb, at, limit, header_s, node)
	local h = { link = link, req_type = v.req_type, msg_size = v.msg_size, kind = v.kind % 4, slot = tvb(at + 8, 1):uint() % 8 }
	h.pkt_num = math.floor(v.pkt_num / 4)
	h.client = (h.kind == REQ or h.kind == RFR) and sender or 3 - sender
	h.where = { link = link, sender = sender, pinfo = pinfo, info = "" }
	node:add(slot_f, tvb(at + 8, 1), h.slot):set_generated()
	local types = (h.kind == REQ or h.kind == RFR) and request_types or reply_types
	items.req_type:append_text(" (" .. (types[h.req_type] or "unknown") .. ")")
	if math.floor(v.magic / 16) ~= 0xB then
		stop_bad("Magic is not 0xB")
	end
	local own = link.ends[3 - sender]
	if own and (own.session ~= v.session or own.tag ~= v.tag) then
		stop_bad("Number or tag of no session of the receiver")
	end
	if not types[h.req_type] then
		mark(items.req_type, "Unknown type")
	end
	return h
end

local function read_packet(tvb, pinfo, at, limit, node, link, sender)
	local h = read_header(tvb, pinfo, at, limit, node, link, sender)
	h.result = result(pinfo, at)
	if not pinfo.visited and not pinfo.in_error_pkt then
		note_packet(h, tvb, pinfo, at, limit)
	end
	if h.result.repeated then
		node:add_proto_expert_info(repeated)
	end
	local request = h.result.request
	if h.kind == REQ and request and request.response then
		node:add(response_in_f, request.response):set_generated()
	end
	node:append_text(": " .. packet_name(h))
	h.where.title = packet_name(h)
	local first = at + HDR_LEN
	guarded(node, function()
		if h.kind == REQ then
			read_req(h, tvb, pinfo, first, limit, node)
		elseif h.kind == RESP then
			read_resp(h, tvb, first, limit, node)
		elseif limit > first then
			stop_bad("Bytes behind the header")
		end
	end)
	return h.where.title .. h.where.info
end

-- packet_len TVB, AT, LIMIT, LINK: length of the packet at AT. The kernel passes several packets of one length to the
-- device as one datagram (GSO), and a capture on the host may show it before it is cut.
local function packet_len(tvb, at, limit, link)
	local rest = limit - at
	if at + HDR_LEN > tvb:len() then
		return rest
	end
	local kind, size = tvb(at + 6, 1):uint() % 4, tvb(at + 1, 3):le_uint()
	local ends = link.ends
	local payload = ends[1] and ends[2] and math.min(ends[1].mtu, ends[2].mtu) - HDR_LEN
	if kind == RFR or kind == CR then
		size = 0
	end
	if payload and size > payload then
		size = payload
	end
	return math.min(rest, HDR_LEN + size)
end

local function dissect_session(tvb, pinfo, tree, link, sender)
	local at, limit = 0, tvb:reported_len()
	local infos = {}
	-- The first packet is as long as all but the last.
	local len = packet_len(tvb, 0, limit, link)
	if limit - len < HDR_LEN or (tvb:len() >= len + HDR_LEN and math.floor(tvb(len + 13, 1):uint() / 16) ~= 0xB) then
		len = limit
	end
	while at < limit do
		local stop = math.min(at + len, limit)
		local node = tree:add(packet_f, tvb(math.min(at, tvb:len()), math.max(math.min(stop, tvb:len()) - at, 0)))
		local info
		guarded(node, function()
			info = read_packet(tvb, pinfo, at, stop, node, link, sender)
		end)
		table.insert(infos, info or "Packet")
		at = stop
	end
	if #infos > 3 then
		infos = { infos[1], infos[2], (#infos - 2) .. " more" }
	end
	pinfo.cols.info = table.concat(infos, "; ")
end

-- Entry ---------------------------------------------------------------------------------------------------------------

local function begin(tvb, pinfo, tree)
	bad_seen = false
	pinfo.cols.protocol = "copyrpc"
	return tree:add(copyrpc, tvb())
end

local function finish(pinfo)
	if bad_seen then
		pinfo.cols.info:append(" [Malformed]")
	end
end

-- The user decodes the port as copyrpc: each packet is one, handshake or session.
function copyrpc.dissector(tvb, pinfo, tree)
	if tvb:len() == 0 then
		return 0
	end
	local node = begin(tvb, pinfo, tree)
	if is_handshake(tvb) then
		dissect_handshake(tvb, pinfo, node)
	else
		local link, sender = find_link(tvb, pinfo)
		if not link then
			link, sender = assumed_link(pinfo)
		end
		dissect_session(tvb, pinfo, node, link, sender)
	end
	finish(pinfo)
	return tvb:len()
end

local function heuristic(tvb, pinfo, tree)
	if is_handshake(tvb) then
		local len = tvb:reported_len()
		if tvb(6, 2):le_uint() ~= len or len < BARE_LEN or len > HANDSHAKE_MAX then
			return false
		end
		dissect_handshake(tvb, pinfo, begin(tvb, pinfo, tree))
		finish(pinfo)
		return true
	end
	local link, sender = find_link(tvb, pinfo)
	if not link then
		return false
	end
	dissect_session(tvb, pinfo, begin(tvb, pinfo, tree), link, sender)
	finish(pinfo)
	return true
end

reset()
copyrpc.init = reset
copyrpc:register_heuristic("udp", heuristic)
DissectorTable.get("udp.port"):add_for_decode_as(copyrpc)
