import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

it('docs/dependencies.md gives a reason for every dependency and for no other', () => {
  const { optionalDependencies, devDependencies } = JSON.parse(read('package.json'))
  const named = [...read('docs/dependencies.md').matchAll(/^\| `([^`]+)` \| (.{20,}) \|$/gm)].map((match) => match[1])
  expect(named.sort()).toEqual([...Object.keys(optionalDependencies), ...Object.keys(devDependencies)].sort())
})

it('every dependency is pinned to one version', () => {
  const { optionalDependencies, devDependencies } = JSON.parse(read('package.json'))
  const versions = Object.values<string>({ ...optionalDependencies, ...devDependencies })
  expect(versions.filter((version) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([])
})

it('pages name the versions that are tested', () => {
  const { version, devDependencies } = JSON.parse(read('package.json'))
  const rows = [...read('docs/tools.md').matchAll(/^\| ((?:`@upstash\/[^`]+`(?:, )?)+) \| ([\d., ]+) \|/gm)]
  const tested = rows.flatMap(([, names = '', versions = '']) => {
    const each = versions.split(', ')
    return [...names.matchAll(/`([^`]+)`/g)].map(([, name = ''], index) => [name, each[index]])
  })
  expect(tested).toHaveLength(5)
  expect(tested).toEqual(tested.map(([name = '']) => [name, devDependencies[name]]))
  const packed = ['install', 'testing'].flatMap((page) => read(`docs/${page}.md`).match(/homeport-[\d.]+\.tgz/g) ?? [])
  expect(new Set(packed)).toEqual(new Set([`homeport-${version}.tgz`]))
})
