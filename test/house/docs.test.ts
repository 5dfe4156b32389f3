import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { GENERATION } from '../../src/store/migrations/migration.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
const filesOf = (folder: string, ending: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith(ending) && !path.includes('node_modules'))
    .map((path) => join(folder, path))
const PAGES = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', 'bench/RESULTS.md', 'console/README.md']
const all = [...PAGES, ...filesOf('docs', '.md'), ...filesOf('examples', '.md')]

const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')
const headingsOf = (path: string): string[] =>
  [...read(path).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading)

/** Whether a file is there, and a page has the heading of an anchor. */
function leadsSomewhere(path: string, anchor: string | undefined): boolean {
  if (!existsSync(join(ROOT, path))) return false
  return anchor === undefined || headingsOf(path).map(anchorOf).includes(anchor)
}

it('each link of a page leads to a file or a heading', () => {
  const dead = all.flatMap((page) => {
    const links = [...read(page).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)/g)]
    const isDead = ([, path = '', anchor]: RegExpExecArray): boolean =>
      !leadsSomewhere(path === '' ? page : normalize(join(page, '..', path)), anchor)
    return links.filter(isDead).map(([link]) => `${page}: ${link}`)
  })
  expect(dead).toEqual([])
})

it('each page and section that a text of the product names exists', () => {
  const sources = ['src', 'console/src', 'deploy', 'scripts'].flatMap((folder) =>
    ['.ts', '.tsx', '.mjs', '.yaml'].flatMap((ending) => filesOf(folder, ending)),
  )
  const gone = sources.flatMap((source) => {
    const text = read(source)
    const links = [...text.matchAll(/\b(docs\/[\w/-]+\.md)(?:#([\w-]+))?/g)]
    const dead = links.filter(([, path = '', anchor]) => !leadsSomewhere(path, anchor)).map(([link]) => link)
    const named = [...text.matchAll(/"([A-Z][^"\n]{2,60})" in (docs\/[\w-]+\.md)/g)]
    const absent = named.filter(([, heading = '', path = '']) => !headingsOf(path).includes(heading))
    return [...dead, ...absent.map(([section]) => section)].map((what) => `${source}: ${what}`)
  })
  expect(gone).toEqual([])
})

it('each text that docs/console.md quotes exists in the console', () => {
  const console = ['.ts', '.tsx']
    .flatMap((ending) => filesOf('console/src', ending))
    .map(read)
    .join('\n')
  const quoted = [...read('docs/console.md').matchAll(/(?:"|\*\*)([A-Z][^"*]+?)…?(?:"|\*\*)/g)].map(
    ([, text = '']) => text,
  )
  expect(quoted.length).toBeGreaterThan(10)
  expect(quoted.filter((text) => !console.includes(text.replaceAll(/\s+/g, ' ')))).toEqual([])
})

it('the page of nodes and the changelog name the generation of this version', () => {
  expect(read('docs/nodes.md')).toContain(`This version has generation ${GENERATION},`)
  expect(read('CHANGELOG.md')).toMatch(new RegExp(`generation ${GENERATION}\\b`))
})
