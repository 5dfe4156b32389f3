import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

const textOf = (folder: string, ending: string): string =>
  readdirSync(folder)
    .filter((name) => name.endsWith(ending))
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('\n')

const classesOf = (text: string): Set<string> => new Set(text.match(/\bm_[0-9a-f]+\b/g))

it('the console has the styles of every component that it uses', () => {
  const [assets, library] = [join(ROOT, 'dist/console/assets'), join(ROOT, 'node_modules/@mantine/core/styles')]
  const used = classesOf(textOf(assets, '.js'))
  const loaded = classesOf(textOf(assets, '.css'))
  const styled = classesOf(textOf(library, '.css'))
  expect(used.size).toBeGreaterThan(100)
  // A file whose component is missing belongs into `console/src/app/styles.ts`.
  expect([...used].filter((name) => styled.has(name) && !loaded.has(name))).toEqual([])
})
