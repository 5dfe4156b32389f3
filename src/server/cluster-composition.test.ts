import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { differences } from '../cluster/agreement.js'
import { loadConfig } from '../config/index.js'
import { agreedOptions } from './cluster-composition.js'

/** The options on which a node at this address would differ from one at 10.0.0.5. */
function differing(host: string, one: object, other: object): readonly string[] {
  const digests = [
    agreedOptions(loadConfig({ flags: { host: '10.0.0.5', proxyTerminatesTls: true, ...one } }), {}),
    agreedOptions(loadConfig({ flags: { host, proxyTerminatesTls: true, ...other } }), {}),
  ].map((options) => JSON.stringify(options))
  return differences(digests[0] ?? '', digests[1] ?? '')
}

it('nodes agree on a public URL that is set, also when it is the address of one of them', () => {
  const url = { publicApiUrl: 'http://10.0.0.5:8700' }
  expect(differing('10.0.0.6', url, url)).toEqual([])
  expect(differing('10.0.0.6', {}, {})).toEqual([])
  expect(differing('10.0.0.6', url, {})).toEqual(['publicApiUrl'])
  expect(differing('10.0.0.6', url, { publicApiUrl: 'http://10.0.0.6:8700' })).toEqual(['publicApiUrl'])
})

it('the documentation names the options that nodes must agree on', () => {
  const page = readFileSync(new URL('../../docs/nodes.md', import.meta.url), 'utf8')
  const [, list = ''] = /^- The same options as the other nodes([\s\S]+?)A node that differs/m.exec(page) ?? []
  const named = [...list.matchAll(/`(\w+)`/g)].map(([, name]) => name)
  expect(named.toSorted()).toEqual(Object.keys(agreedOptions(loadConfig({ flags: {} }), {})).toSorted())
})
