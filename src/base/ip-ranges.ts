import { BlockList, isIP } from 'node:net'

interface IpRange {
  readonly address: string
  readonly family: 'ipv4' | 'ipv6'
  readonly prefixBits: number
}

const RANGE = /^([0-9a-fA-F.:]+)(?:\/(\d{1,3}))?$/

function parse(text: string): IpRange | undefined {
  const [, address = '', bits] = RANGE.exec(text) ?? []
  const version = isIP(address)
  if (version === 0) return undefined
  const most = version === 4 ? 32 : 128
  const prefixBits = bits === undefined ? most : Number(bits)
  return prefixBits <= most ? { address, family: version === 4 ? 'ipv4' : 'ipv6', prefixBits } : undefined
}

/** Whether a text is an IPv4 or IPv6 address, or a network such as `203.0.113.0/24`. */
export function isIpRange(text: string): boolean {
  return parse(text) !== undefined
}

/** An IPv4 address that arrived over an IPv6 socket. */
const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i

/**
 * Makes a test for addresses out of addresses and networks (see `isIpRange`). No range at all lets every address pass;
 * an unreadable range lets none pass.
 */
export function ipMatcher(ranges: readonly string[]): (address: string) => boolean {
  if (ranges.length === 0) return () => true
  const list = new BlockList()
  for (const range of ranges) {
    const parsed = parse(range)
    if (parsed) list.addSubnet(parsed.address, parsed.prefixBits, parsed.family)
  }
  return (address) => {
    const plain = MAPPED.exec(address)?.[1] ?? address
    const version = isIP(plain)
    return version !== 0 && list.check(plain, version === 4 ? 'ipv4' : 'ipv6')
  }
}
