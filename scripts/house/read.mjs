import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { codeOnly, withoutComments } from './strip.mjs'

const FOLDERS = ['src', 'test', 'bench', 'scripts', 'console/src']
const IMPORT = /(?:\bfrom|\bimport)\s*\(?\s*(['"])([^'"\n]+)\1/g

const moduleOf = (path) => /^src\/(\w+)\//.exec(path)?.[1]

/** Every source file under the root, ready for the rules; keyed by path. */
export function readSources(root) {
  const paths = FOLDERS.filter((folder) => existsSync(join(root, folder))).flatMap((folder) => filesIn(root, folder))
  return new Map(paths.map((path) => [path, readFile(root, path)]))
}

function filesIn(root, folder) {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(?:ts|tsx|mjs|js)$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .filter((path) => !path.includes('node_modules/'))
    .sort()
}

function readFile(root, path) {
  const source = readFileSync(join(root, path), 'utf8')
  const code = codeOnly(source)
  return {
    path,
    source,
    code,
    imports: importsOf(root, path, withoutComments(source), code),
    module: moduleOf(path),
    isTest: /\.(?:test|spec)\.tsx?$|\/testing\//.test(path),
  }
}

/** The imports of a file. Import statements inside string literals do not count. */
function importsOf(root, path, source, code) {
  const matches = [...source.matchAll(IMPORT)].filter((match) => code[match.index] !== ' ')
  return matches.map((match) => {
    const from = match[2]
    const target = from.startsWith('.') ? relative(root, resolve(root, dirname(path), from)) : undefined
    return { from, target, module: target && moduleOf(target), line: source.slice(0, match.index).split('\n').length }
  })
}
