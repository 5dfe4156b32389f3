import type { LookupAddress } from 'node:dns'
import { describe, expect, it } from 'vitest'
import { ipMatcher, isIpRange, TargetGate } from './network.js'

const gate = new TargetGate('public')

function isRefused(url: string): boolean {
  try {
    gate.check(new URL(url))
    return false
  } catch {
    return true
  }
}

/** Spellings of this machine's address that the URL parser accepts. */
const LOOPBACK_SPELLINGS = [
  '127.0.0.1',
  '127.1',
  '127.0.1',
  '127.000.000.001',
  '0177.0.0.1',
  '0177.0.0.01',
  '0x7f.0.0.1',
  '0x7f.1',
  '0x7f.0x0.0x0.0x1',
  '0x7f000001',
  '0X7F000001',
  '2130706433',
  '017700000001',
  '127.0.0.1.',
  '127.255.255.254',
  '127.0.0.2',
  '127.00.00.01',
  '%31%32%37.0.0.1',
  '127%2E0%2E0%2E1',
  '１２７.0.0.1',
  '127。0。0。1',
  '①②⑦.0.0.1',
  '0',
  '0.0.0.0',
  '0x0',
  '00',
  '0.0',
]

const PRIVATE_V4 = [
  '0.0.0.1',
  '0.255.255.255',
  '10.0.0.0',
  '10.0.0.1',
  '10.255.255.255',
  '10.1',
  '0xa.0.0.1',
  '012.0.0.1',
  '167772161',
  '100.64.0.0',
  '100.64.0.1',
  '100.100.100.200',
  '100.127.255.255',
  '168.63.129.16',
  '169.254.0.0',
  '169.254.169.254',
  '169.254.170.2',
  '169.254.255.255',
  '169.16689662',
  '2852039166',
  '0xa9fea9fe',
  '0251.0376.0251.0376',
  '0xa9.0xfe.0xa9.0xfe',
  '172.16.0.0',
  '172.16.0.1',
  '172.20.10.5',
  '172.31.255.255',
  '0xac.16.0.1',
  '192.0.0.1',
  '192.0.0.170',
  '192.0.0.192',
  '192.0.2.1',
  '192.0.2.255',
  '192.88.99.1',
  '192.168.0.0',
  '192.168.0.1',
  '192.168.1.1',
  '192.168.255.255',
  '192.168.257',
  '3232235777',
  '0xc0a80101',
  '0300.0250.1.1',
  '198.18.0.1',
  '198.19.255.255',
  '198.51.100.1',
  '203.0.113.7',
  '224.0.0.1',
  '239.255.255.255',
  '240.0.0.1',
  '250.1.2.3',
  '255.255.255.254',
  '255.255.255.255',
  '0xffffffff',
  '4294967295',
]

const PRIVATE_V6 = [
  '::',
  '::1',
  '0:0:0:0:0:0:0:1',
  '0000:0000:0000:0000:0000:0000:0000:0001',
  '::0.0.0.1',
  '::127.0.0.1',
  '::7f00:1',
  '::10.0.0.1',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '::FFFF:127.0.0.1',
  '0:0:0:0:0:ffff:127.0.0.1',
  '0:0:0:0:0:ffff:7f00:0001',
  '::ffff:0.0.0.0',
  '::ffff:10.0.0.1',
  '::ffff:a00:1',
  '::ffff:169.254.169.254',
  '::ffff:a9fe:a9fe',
  '::ffff:172.16.0.1',
  '::ffff:192.168.1.1',
  '::ffff:c0a8:101',
  '::ffff:100.64.0.1',
  '::ffff:224.0.0.1',
  '::ffff:255.255.255.255',
  '::ffff:0:127.0.0.1',
  '64:ff9b::127.0.0.1',
  '64:ff9b::7f00:1',
  '64:ff9b::10.0.0.1',
  '64:ff9b::169.254.169.254',
  '64:ff9b::192.168.0.1',
  '64:ff9b:1::1',
  '64:ff9b:1::8.8.8.8',
  '100::1',
  '100:0:0:1::1',
  '2001::1',
  '2001:0:4136:e378:8000:63bf:3fff:fdd2',
  '2001:2::1',
  '2001:10::1',
  '2001:20::1',
  '2001:db8::1',
  '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff',
  '2001:0db8:0000:0000:0000:0000:0000:0001',
  '2002::1',
  '2002:7f00:1::1',
  '2002:a00:1::',
  '2002:c0a8:101::1',
  '3fff::1',
  '3fff:fff::1',
  '4000::1',
  '5f00::1',
  '8000::1',
  'fc00::1',
  'fc00::',
  'fd00::1',
  'fd00:ec2::254',
  'fd12:3456:789a:1::1',
  'fdff:ffff::1',
  'fe80::1',
  'fe80::a9fe:a9fe',
  'febf::1',
  'fec0::1',
  'feff::1',
  'ff00::1',
  'ff01::1',
  'ff02::1',
  'ff02::2',
  'ff05::1:3',
  'ff0e::1',
  'FE80::1',
  'FD00::1',
]

const PUBLIC = [
  '1.1.1.1',
  '8.8.8.8',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.1',
  '134744072',
  '0x08080808',
  '169.253.255.255',
  '169.255.0.0',
  '172.15.255.255',
  '172.32.0.0',
  '192.0.1.1',
  '192.0.3.1',
  '192.88.98.1',
  '192.167.255.255',
  '192.169.0.0',
  '198.17.255.255',
  '198.20.0.0',
  '203.0.112.1',
  '203.0.114.1',
  '223.255.255.255',
  '[2606:4700:4700::1111]',
  '[2001:4860:4860::8888]',
  '[2a00:1450:4001::1]',
  '[2003::1]',
  '[::ffff:8.8.8.8]',
  '[::ffff:808:808]',
  '[64:ff9b::8.8.8.8]',
  '[2001:200::1]',
]

const REFUSED = [...LOOPBACK_SPELLINGS, ...PRIVATE_V4, ...PRIVATE_V6.map((address) => `[${address}]`)]

describe('the public policy', () => {
  it('is tested with at least 150 hosts', () => {
    expect(REFUSED.length + PUBLIC.length).toBeGreaterThanOrEqual(150)
  })

  it.each(REFUSED)('refuses http://%s/', (host) => {
    expect(isRefused(`http://${host}/`)).toBe(true)
    expect(isRefused(`https://${host}:8443/x?y=z`)).toBe(true)
  })

  it.each(PUBLIC)('allows http://%s/', (host) => {
    expect(isRefused(`http://${host}/`)).toBe(false)
  })
})

describe('a name', () => {
  const resolved = (...answers: string[][]) => {
    let asked = 0
    const resolving = new TargetGate('public', (_name, _options, done) => {
      const addresses = answers[Math.min(asked++, answers.length - 1)] ?? []
      done(
        null,
        addresses.map((address): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 })),
      )
    })
    const lookup = () => resolving.addressesOf('name.test')
    return { lookup, asked: () => asked }
  }

  it.each([
    [['127.0.0.1']],
    [['::1']],
    [['10.0.0.1', '8.8.8.8']],
    [['8.8.8.8', '10.0.0.1']],
    [['8.8.8.8', '::ffff:169.254.169.254']],
    [['2606:4700:4700::1111', 'fd00::1']],
    [['fe80::1%eth0']],
    [[]],
  ])('that resolves to %j is refused, because every address must be public', async (addresses) => {
    await expect(resolved(addresses).lookup()).rejects.toThrow(/public addresses only/)
  })

  it('is resolved once, and the connection goes to the checked addresses', async () => {
    const { lookup, asked } = resolved(['8.8.8.8'], ['127.0.0.1'])
    expect(await lookup()).toEqual([{ address: '8.8.8.8', family: 4 }])
    expect(asked()).toBe(1)
    await expect(lookup()).rejects.toThrow(/loopback/)
  })
})

describe('ranges of addresses', () => {
  it.each([
    ['203.0.113.7', true],
    ['10.0.0.0/8', true],
    ['0.0.0.0/0', true],
    ['2001:db8::/32', true],
    ['::1', true],
    ['10.0.0.0/33', false],
    ['::/129', false],
    ['10.0.0', false],
    ['10.0.0.0/', false],
    ['10.0.0.0/-1', false],
    ['home', false],
    ['', false],
  ])('says whether %s is an address or network: %s', (text, expected) => {
    expect(isIpRange(text)).toBe(expected)
  })

  it('matches addresses in a range, including IPv4 addresses that arrived over an IPv6 socket', () => {
    const matches = ipMatcher(['10.0.0.0/8', '203.0.113.7', '2001:db8::/32'])
    for (const inside of ['10.1.2.3', '203.0.113.7', '::ffff:10.1.2.3', '2001:db8::7'])
      expect(matches(inside)).toBe(true)
    for (const outside of ['11.0.0.1', '203.0.113.8', '::1', '2001:db9::1', '', 'x'])
      expect(matches(outside)).toBe(false)
  })

  it('matches every address without ranges, and none when the only range is malformed', () => {
    expect(ipMatcher([])('192.0.2.1')).toBe(true)
    expect(ipMatcher(['nonsense'])('192.0.2.1')).toBe(false)
  })
})
