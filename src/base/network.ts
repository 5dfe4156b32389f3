import type { LookupAddress, LookupOptions } from 'node:dns'
import { BlockList, isIP } from 'node:net'
import { NameLookups } from './name-lookups.js'

/**
 * Which destinations named by users the server may contact: everything, or public addresses only (protection against
 * server-side request forgery).
 *
 * `TargetGate` checks where connections are made, so nothing bypasses it: messages, callbacks, endpoints of URL groups,
 * schedules, workflow calls, and servers that data is imported from. A literal address is checked after the URL parser
 * has brought it into its canonical form. A name is resolved once; all its addresses must be allowed, and the connection
 * goes to exactly those addresses, so a name that resolves differently a moment later gains nothing (DNS rebinding). No
 * redirect is followed, so a response cannot lead anywhere else.
 */
export type TargetPolicy = 'everything' | 'public'

/** A destination that the policy forbids. */
export class TargetRefused extends Error {
  constructor(found: string, reason: string) {
    super(`${found} is ${reason}; this server contacts public addresses only (deliveryTargets)`)
    this.name = 'TargetRefused'
  }
}

type Range = readonly [network: string, prefixBits: number, reason: string]

/**
 * Special-purpose IPv4 networks without public services, and one address that looks public but leads to a cloud's own
 * service on each of its machines.
 */
const FORBIDDEN_V4: readonly Range[] = [
  ['0.0.0.0', 8, 'this network'],
  ['10.0.0.0', 8, 'a private address'],
  ['100.64.0.0', 10, 'an address behind a carrier NAT'],
  ['127.0.0.0', 8, 'a loopback address'],
  ['168.63.129.16', 32, 'an address of the cloud that the machine runs in'],
  ['169.254.0.0', 16, 'a link-local address'],
  ['172.16.0.0', 12, 'a private address'],
  ['192.0.0.0', 24, 'a protocol address'],
  ['192.0.2.0', 24, 'a documentation address'],
  ['192.88.99.0', 24, 'a relay address'],
  ['192.168.0.0', 16, 'a private address'],
  ['198.18.0.0', 15, 'a benchmarking address'],
  ['198.51.100.0', 24, 'a documentation address'],
  ['203.0.113.0', 24, 'a documentation address'],
  ['224.0.0.0', 4, 'a multicast address'],
  ['240.0.0.0', 4, 'a reserved address'],
]

/** Networks in the global unicast space of IPv6 that are not public. */
const FORBIDDEN_V6: readonly Range[] = [
  ['2001::', 23, 'a protocol address'],
  ['2001:db8::', 32, 'a documentation address'],
  ['2002::', 16, 'a 6to4 address'],
  ['3fff::', 20, 'a documentation address'],
]

const rules = (ranges: readonly Range[], family: 'ipv4' | 'ipv6') =>
  ranges.map(([network, bits, reason]) => {
    const list = new BlockList()
    list.addSubnet(network, bits, family)
    return { reason, covers: (address: string) => list.check(address, family) }
  })

const RULES_V4 = rules(FORBIDDEN_V4, 'ipv4')
const RULES_V6 = rules(FORBIDDEN_V6, 'ipv6')

/** Why an address is not public, in words; `undefined` when it is. Text that is no address is not public. */
function addressProblem(address: string): string | undefined {
  const plain = address.replace(/%.*$/, '')
  switch (isIP(plain)) {
    case 4:
      return RULES_V4.find((rule) => rule.covers(plain))?.reason
    case 6:
      return problemOfV6(plain)
    default:
      return 'no address'
  }
}

function problemOfV6(address: string): string | undefined {
  const groups = groupsOf(address)
  const embedded = embeddedV4(groups)
  if (embedded !== undefined) return addressProblem(embedded)
  const isGlobalUnicast = ((groups[0] ?? 0) & 0xe000) === 0x2000
  if (!isGlobalUnicast) return 'not a public address'
  return RULES_V6.find((rule) => rule.covers(address))?.reason
}

/** The eight groups of an IPv6 address. The URL parser accepts every spelling and normalizes it. */
function groupsOf(address: string): number[] {
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [head = '', tail] = canonical.split('::')
  const parse = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16))
  const front = parse(head)
  const back = tail === undefined ? [] : parse(tail)
  return [...front, ...new Array<number>(8 - front.length - back.length).fill(0), ...back]
}

/** The IPv4 address that a mapped (`::ffff:0:0/96`) or translated (`64:ff9b::/96`) address leads to. */
function embeddedV4(groups: readonly number[]): string | undefined {
  const prefix = groups.slice(0, 6).join(':')
  if (prefix !== '0:0:0:0:0:65535' && prefix !== `${0x64}:${0xff9b}:0:0:0:0`) return undefined
  const [high = 0, low = 0] = groups.slice(6)
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

/** Names of the machine itself, regardless of what a resolver answers. */
const LOCAL_NAME = /^(?:.*\.)?localhost\.?$/

/**
 * Why a policy forbids the host of a URL, in words. It checks only what needs no look-up: literal addresses and the name
 * `localhost`.
 */
export function targetProblem(url: URL, policy: TargetPolicy): string | undefined {
  if (policy === 'everything') return undefined
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (LOCAL_NAME.test(host)) return 'a loopback address'
  return isIP(host) === 0 ? undefined : addressProblem(host)
}

/** Resolves a name to all its addresses; the signature of `dns.lookup`. */
export type Resolve = (
  name: string,
  options: { readonly all: true; readonly family?: number | undefined },
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

type LookupDone = (
  error: NodeJS.ErrnoException | null,
  address: string | LookupAddress[],
  family?: number | undefined,
) => void

/** Shared by all gates, because they share the threads for look-ups. */
const lookups = new NameLookups()

const resolveByDns: Resolve = (name, { family }, done) =>
  void lookups.find(name, family).then(
    (addresses) => done(null, addresses),
    (error: NodeJS.ErrnoException) => done(error, []),
  )

/** Checks destinations against a policy. */
export class TargetGate {
  readonly #policy: TargetPolicy
  readonly #resolve: Resolve

  constructor(policy: TargetPolicy, resolve: Resolve = resolveByDns) {
    this.#policy = policy
    this.#resolve = resolve
  }

  /**
   * Checks the host of a URL if it is an address or `localhost`; `lookup` checks other names when it resolves them.
   * @throws TargetRefused
   */
  check(url: URL): void {
    const problem = targetProblem(url, this.#policy)
    if (problem !== undefined) throw new TargetRefused(url.hostname.replace(/^\[|\]$/g, ''), problem)
  }

  /** A `lookup` function for sockets: answers only allowed addresses, and fails when any address is forbidden. */
  readonly lookup = (name: string, options: LookupOptions, done: LookupDone): void => {
    const family = typeof options.family === 'number' ? options.family : undefined
    this.#resolve(name, { all: true, family }, (error, addresses) => {
      if (error) return done(error, [])
      try {
        this.#checkAddresses(name, addresses)
      } catch (refusal) {
        return done(refusal as Error, [])
      }
      if (options.all) return done(null, addresses)
      const [first] = addresses
      done(null, first?.address ?? '', first?.family)
    })
  }

  /**
   * All addresses of a host, checked, for a client that opens its own connections.
   * @throws TargetRefused
   */
  addressesOf(host: string): Promise<readonly LookupAddress[]> {
    return new Promise((resolve, reject) => {
      this.lookup(host, { all: true }, (error, found) => {
        if (error) reject(error)
        else resolve(Array.isArray(found) ? found : [])
      })
    })
  }

  #checkAddresses(name: string, addresses: readonly LookupAddress[]): void {
    if (this.#policy === 'everything') return
    if (addresses.length === 0) throw new TargetRefused(name, 'without an address')
    for (const { address } of addresses) refuseUnlessPublic(address, `${name} (${address})`)
  }
}

function refuseUnlessPublic(address: string, shown: string): void {
  const problem = addressProblem(address)
  if (problem !== undefined) throw new TargetRefused(shown, problem)
}

interface IpRange {
  readonly address: string
  readonly family: 'ipv4' | 'ipv6'
  readonly prefixBits: number
}

const RANGE_PATTERN = /^([0-9a-fA-F.:]+)(?:\/(\d{1,3}))?$/

function parseRange(text: string): IpRange | undefined {
  const [, address = '', bits] = RANGE_PATTERN.exec(text) ?? []
  const version = isIP(address)
  if (version === 0) return undefined
  const most = version === 4 ? 32 : 128
  const prefixBits = bits === undefined ? most : Number(bits)
  return prefixBits <= most ? { address, family: version === 4 ? 'ipv4' : 'ipv6', prefixBits } : undefined
}

/** Whether a text is an IPv4 or IPv6 address, or a network such as `203.0.113.0/24`. */
export function isIpRange(text: string): boolean {
  return parseRange(text) !== undefined
}

/** How an IPv6 socket shows the address of an IPv4 client. */
const MAPPED_V4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i

/**
 * Makes a function that tests whether an address is in one of the ranges (see `isIpRange`). An empty list matches every
 * address; a malformed range matches none.
 */
export function ipMatcher(ranges: readonly string[]): (address: string) => boolean {
  if (ranges.length === 0) return () => true
  const list = new BlockList()
  for (const range of ranges) {
    const parsed = parseRange(range)
    if (parsed) list.addSubnet(parsed.address, parsed.prefixBits, parsed.family)
  }
  return (address) => {
    const plain = MAPPED_V4.exec(address)?.[1] ?? address
    const version = isIP(plain)
    return version !== 0 && list.check(plain, version === 4 ? 'ipv4' : 'ipv6')
  }
}
