/**
 * The house rules. A rule checks one file and returns its violations, each with its line. A banned call names its
 * replacement. An accident that could happen again gets a fix and then a rule.
 *
 * A file is `{ path, source, code, imports, module, isTest }`; `code` is the source without comments and strings.
 */
import { BELOW, OPEN_FOLDER, OPEN_PLACES, TOP } from './modules.mjs'

const MAX_LINES = 400

const inSrc = (file) => file.path.startsWith('src/')
const inProduct = (file) => inSrc(file) && !file.isTest

/** Patterns that are banned from the code of some files. `except` lists the modules and files that may use them. */
const BANNED = [
  {
    pattern: /\b(?:setTimeout|setInterval)\s*\(/g,
    where: inProduct,
    except: ['base', 'cli'],
    say: 'wait with the Clock of base, so that tests can control time',
  },
  {
    pattern: /\bDate\.now\s*\(|\bnew Date\(\)/g,
    where: inProduct,
    // A migration only records when it ran; nothing waits for that time.
    except: ['base', 'cli', 'src/store/sqlite/thread.ts', 'src/store/postgres/store.ts'],
    say: 'ask the Clock of base for the time',
  },
  {
    pattern: /\bconsole\./g,
    where: inProduct,
    except: ['cli', 'src/main.ts'],
    say: 'log with the Logger of telemetry',
  },
  {
    pattern: /\.(?:trace|debug|info|warn|error)\(\s*\{[^{}]*\berr\b(?=\s*[:,}])/g,
    where: inProduct,
    except: [],
    say: 'log an error under the key error, which is logged with its stack and without the properties that a driver adds',
  },
  {
    pattern: /\bprocess\.env\b/g,
    where: inProduct,
    // There is no Config in the process of an application's tests, nor before the program is loaded.
    except: ['config', 'src/testkit/client.ts', 'src/main.ts'],
    say: 'take it from the Config',
  },
  {
    pattern: /\bprocess\.exit\s*\(/g,
    where: inProduct,
    except: ['cli', 'src/main.ts', 'fleet', 'src/testkit/host.ts'],
    say: 'throw, and let the command choose the exit code',
  },
  {
    pattern: /\bMath\.random\s*\(/g,
    where: inProduct,
    except: [],
    say: 'use newId or randomSecret of base, or randomInt of node:crypto for jitter',
  },
  { pattern: /(?::\s*|\bas\s+|<)any\b/g, where: inProduct, except: [], say: 'use unknown and parse it' },
  {
    pattern: /\b(?:it|test|describe|suite)(?:\.\w+)*\.only\b/g,
    where: (file) => file.isTest,
    except: [],
    say: 'remove .only, it hides all other tests',
  },
  {
    pattern: /new Promise(?:<[^>]*>)?\(\s*\(?\w*\)?\s*=>\s*(?:\{\s*)?setTimeout\s*\(|(?<![.\w])sleep\s*\(/g,
    // A benchmark may run load for a time; a test must not wait for a time.
    where: (file) => file.isTest || file.path.startsWith('test/'),
    except: ['test/support/wait-for.ts'],
    say: 'do not sleep: waitFor a condition, or advance a ManualClock',
  },
]

/** Modules that only some modules may import. */
const BANNED_IMPORTS = [
  {
    modules: /^(?:better-sqlite3|node:sqlite|pg)$/,
    except: ['store', 'src/base/sqlite/better-sqlite3.ts'],
    say: 'only store/ speaks to a database; use a transaction',
  },
  {
    modules: /^kysely$/,
    except: ['store'],
    exceptFolder: OPEN_FOLDER,
    say: 'only transactions contain queries: move it into a folder transactions/',
  },
  {
    modules: /^(?:node:)?child_process$/,
    // The client of the test servers starts the process that hosts them, beside an application's tests. The command
    // line starts small programs of the operating system: the browser, the notification of systemd. And it starts a
    // PostgreSQL for those who try a cluster out.
    except: ['fleet', 'src/testkit/client.ts', 'src/cli/system-programs.ts', 'src/cli/nodes/local-postgres.ts'],
    say: 'only fleet/ starts processes; use it',
  },
  {
    modules: /^(?:node:)?timers\/promises$/,
    except: ['base'],
    say: 'wait with the Clock of base, in tests for a condition',
    inTests: true,
  },
]

const isExcepted = (file, except) => except.some((place) => place === file.module || place === file.path)

const lineAt = (text, index) => text.slice(0, index).split('\n').length

function bannedCalls(file) {
  return BANNED.filter((ban) => ban.where(file) && !isExcepted(file, ban.except)).flatMap((ban) =>
    [...file.code.matchAll(ban.pattern)].map((match) => ({
      line: lineAt(file.code, match.index),
      text: `${match[0].trim().replace(/\s+/g, ' ')} is banned here: ${ban.say}`,
    })),
  )
}

function bannedImports(file) {
  const bans = BANNED_IMPORTS.filter((ban) => inProduct(file) || (ban.inTests && file.isTest))
  return bans
    .filter((ban) => !isExcepted(file, ban.except) && file.path.split('/')[2] !== (ban.exceptFolder ?? ''))
    .flatMap((ban) =>
      file.imports
        .filter(({ from }) => ban.modules.test(from))
        .map(({ from, line }) => ({ line, text: `importing ${from} is banned here: ${ban.say}` })),
    )
}

const isTransaction = (target) => target.split('/')[2] === OPEN_FOLDER

function importOrder(file) {
  if (!inSrc(file) || file.module === undefined || TOP.includes(file.module)) return []
  const allowed = BELOW[file.module]
  if (allowed === undefined)
    return [{ line: 1, text: `the module ${file.module} has no place in scripts/house/modules.mjs` }]
  return (
    file.imports
      .filter(({ module }) => module !== undefined && module !== file.module && !allowed.includes(module))
      // A test of the store may use the transactions of any module.
      .filter(({ target }) => !(file.isTest && isTransaction(target)))
      .map(({ module, line }) => ({
        line,
        text: `${file.module} may not import from ${module}: it may use ${allowed.join(', ') || 'nothing'}`,
      }))
  )
}

/** The program of a store thread loads the transactions of all modules. */
const THREAD_PROGRAM = 'src/store-thread.ts'

function frontDoors(file, files) {
  if (!inProduct(file) || file.path === THREAD_PROGRAM) return []
  return file.imports
    .filter(({ module }) => module !== undefined && module !== file.module)
    .filter(({ target }) => !OPEN_PLACES.some((place) => target.startsWith(place)))
    .filter(({ target }) => !isTransaction(target))
    .filter(({ module, target }) => files.has(`src/${module}/index.ts`) && target !== `src/${module}/index.js`)
    .map(({ module, line }) => ({ line, text: `import from ${module}/index.js, not from inside the module` }))
}

const DROPPED = /\bvoid (?:this\.)?(#?\w+)\([^;\n]*/g

/**
 * A promise that nobody awaits ends the process when it rejects. So a caller that drops one has to catch its error, or
 * the doc comment of the function has to say that it never rejects.
 */
function droppedPromises(file) {
  if (!inProduct(file)) return []
  return [...file.code.matchAll(DROPPED)]
    .filter(([call]) => !/\.catch\(/.test(call))
    .filter(([, name]) => mayReject(file.source, name))
    .map(({ 1: name, index }) => ({
      line: lineAt(file.code, index),
      text: `the promise of ${name} is dropped: catch its error, or say "Never rejects" in its doc comment`,
    }))
}

/** Whether a name is an async function of this file whose comment does not say that it never rejects. */
function mayReject(source, name) {
  const lines = source.split('\n')
  const at = lines.findIndex((line) => new RegExp(`^\\s*(?:export )?async (?:function )?${name}\\(`).test(line))
  if (at < 0) return false
  const above = lines.slice(0, at).join('\n')
  const comment = above.trimEnd().endsWith('*/') ? above.slice(above.lastIndexOf('/**')) : ''
  return !/never rejects/i.test(comment)
}

function fileLength(file) {
  const lines = file.source.split('\n').length - 1
  return lines < MAX_LINES ? [] : [{ line: lines, text: `${lines} lines, the limit is ${MAX_LINES}: split the file` }]
}

const DECLARATION =
  /^export (?:declare )?(?:abstract )?(?:(?:async )?function\*? (\w+)|class (\w+)|interface (\w+)|type (\w+)|const (\w+)(?:: [^=]+)? = (?:async )?(?:\(|<|function|\w+ =>))/

function undocumentedExports(file) {
  if (!inProduct(file)) return []
  const lines = file.source.split('\n')
  const documented = new Set()
  return lines.flatMap((text, index) => {
    const name = DECLARATION.exec(text)?.slice(1).find(Boolean)
    if (name === undefined || documented.has(name)) return []
    documented.add(name)
    if (/\*\/\s*$/.test(lines[index - 1] ?? '')) return []
    return [{ line: index + 1, text: `${name} is exported without a doc comment` }]
  })
}

const VALUE = /^export (?:async )?(?:function\*?|const|class|abstract class) (\w+)/gm
/** Places whose exports other programs use, or which are collected as a whole, such as declarations and migrations. */
const CALLED_FROM_OUTSIDE = ['src/contract/', 'src/store/migrations/']

/** Cache of the index from a word to the files whose code contains it. */
const wordIndexes = new WeakMap()
function filesNaming(word, files) {
  if (!wordIndexes.has(files)) {
    const byWord = new Map()
    for (const { path, code } of files.values()) {
      for (const name of new Set(code.match(/\b\w+\b/g))) byWord.set(name, [...(byWord.get(name) ?? []), path])
    }
    wordIndexes.set(files, byWord)
  }
  return wordIndexes.get(files).get(word) ?? []
}

/** An exported value that no other file names is dead code, or needs no export. */
function unusedExports(file, files) {
  if (!inProduct(file) || CALLED_FROM_OUTSIDE.some((place) => file.path.startsWith(place))) return []
  return [...file.code.matchAll(VALUE)]
    .filter(([, name]) => filesNaming(name, files).every((path) => path === file.path))
    .map(({ 1: name, index }) => ({
      line: lineAt(file.code, index),
      text: `${name} is exported, and nobody imports it: remove the export, or the code`,
    }))
}

/** Finds literal objects that are spread into another object. */
function spreadLiterals(file) {
  return [...file.code.matchAll(/\.{3}\{/g)].map(({ index }) => ({
    line: lineAt(file.code, index),
    text: 'a literal object is spread into another: write its properties there',
  }))
}

function unfinished(file) {
  // The words are joined at run time, so that the rule does not find itself.
  const pattern = new RegExp(`\\b(?:${['TO', 'FIX'].map((start, i) => start + ['DO', 'ME'][i]).join('|')})\\b`, 'g')
  return [...file.source.matchAll(pattern)].map((match) => ({
    line: lineAt(file.source, match.index),
    text: `${match[0]}: finish it, or open an issue`,
  }))
}

/** All rules, in the order of their importance. */
export const RULES = [
  importOrder,
  frontDoors,
  bannedImports,
  bannedCalls,
  droppedPromises,
  undocumentedExports,
  unusedExports,
  spreadLiterals,
  unfinished,
  fileLength,
]
