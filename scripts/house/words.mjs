/**
 * One word for one thing. Each rule names a word that the glossary replaces, and the word to write instead. A rule
 * reads comments, texts, identifiers and documentation alike; identifiers are read word by word.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

/** `allow` matches permitted uses: a name on the wire or in a stored row, or the same word in another sense. */
const WORDS = [
  { pattern: /\brooms?\b/gi, say: 'write module, or space' },
  { pattern: /\bwish(?:es|ed)?\b/gi, say: 'write desired, or want' },
  { pattern: /\bow(?:e|es|ed|ing)\b/gi, say: 'write pending' },
  {
    pattern: /[a-z0-9] (?:Parts|Surroundings|Seams)\b/g,
    say: 'write XxxDeps, XxxOptions or batches',
    allow: /formatToParts/g,
  },
  { pattern: /\b(?:surroundings|portions?)\b/gi, say: 'write deps, options or batch' },
  {
    pattern: /\bcancel(?:ed|able)\b/gi,
    say: 'write cancelled; only the wire and stored rows spell it with one l',
    allow: /(['"`])canceled\1|\w*CANCELED\w*|\bcanceled_by\b|\bcanceledBy\b|\bisCanceled\b|\bcanceled:/g,
  },
  { pattern: /\bfor ever\b/gi, say: 'write forever, or for good' },
  { pattern: /\b(?:under way|going on)\b/gi, say: 'write active, pending or running' },
  { pattern: /\bat rest\b/gi, say: 'write asleep', allow: /encrypt\w*[ -]at[ -]rest|encryption_?at_?rest/gi },
  { pattern: /\bgiv(?:e|es|ing) ?way\b/gi, say: 'write evict' },
  { pattern: /\b(?:told|let know)\b/gi, say: 'write notified, reported or shown' },
  { pattern: /\bothers first\b/gi, say: 'write yieldToEventLoop' },
  { pattern: /\b(?:own lane|pinned stream)\b/gi, say: 'write dedicated lane' },
  { pattern: /\b(?:nearby|spares|keepers?)\b/gi, say: 'say which: replica, primary, noTouch, health check' },
  { pattern: /\bso many\b/gi, say: 'write the number, or this many' },
  { pattern: /\bOf what\b/g, say: 'begin with the subject' },
  { pattern: /\b(?:whoever|whosever)\b/gi, say: 'name the actor' },
  { pattern: /\bwhat(?:ever)? became of\b/gi, say: 'write outcome, state or regardless of' },
  { pattern: /\b(?:comes? to (?:its|their|an) end|goes? home)\b/gi, say: 'write ends, completes or returns' },
  { pattern: /\b(?:taken for|told apart|tell apart)\b/gi, say: 'write mistaken for, or distinguished' },
  { pattern: /\btaken in\b/gi, say: 'write accepted, received or read' },
  { pattern: /\bby way of\b/gi, say: 'write through, or with' },
  { pattern: /\banew\b/gi, say: 'write again, or name the verb: recreate, restart' },
  {
    pattern: /\bworlds?\b/gi,
    say: 'write simulation, destinations or clients',
    allow: /hello\W+world|' world'|world-readable|--name world/gi,
  },
  { pattern: /\bwitness(?:es|ed)?\b/gi, say: 'write check, record or evidence' },
  {
    pattern: /\bconst (?:MOST|LONGEST|LEAST|FEWEST|SHORTEST) [A-Z]+/g,
    say: 'a limit is called MAX_… or MIN_…',
    // A name, not a limit.
    allow: /LONGEST_NAME = `/g,
  },
]

const FOLDERS = ['src', 'test', 'bench', 'scripts', 'console/src', 'docs', 'examples']
const PAGES = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md']
const READ = /\.(?:ts|tsx|mjs|js|md)$/

/** Files about the words themselves, and migrations, which never change. */
const EXCEPT = [/^scripts\/house\/words\.mjs$/, /^test\/house\//, /^src\/store\/migrations\//, /^docs\/glossary\.md$/]

/** The replaced words in the files under a root whose path starts with a prefix. */
export function wordProblems(root, prefix = '') {
  return pathsIn(root)
    .filter((path) => path.startsWith(prefix) && !EXCEPT.some((except) => except.test(path)))
    .flatMap((path) => problemsOf(path, readFileSync(join(root, path), 'utf8')))
}

function problemsOf(path, source) {
  const raw = source.split('\n')
  return WORDS.flatMap(({ pattern, say, allow }) =>
    raw.flatMap((line, index) => {
      const text = inWords(allow ? line.replace(allow, ' ') : line)
      return [...text.matchAll(pattern)].map(([found]) => `${path}:${index + 1} "${found.trim()}": ${say}`)
    }),
  )
}

/** `giveWay` and `give_way` are read as two words each. */
const inWords = (line) => line.replace(/([a-z0-9])([A-Z])/g, '$1 $2').replace(/_/g, ' ')

function pathsIn(root) {
  const pages = PAGES.filter((page) => readdirSync(root).includes(page))
  return [...FOLDERS.flatMap((folder) => filesIn(root, folder)), ...pages]
}

function filesIn(root, folder) {
  let entries
  try {
    entries = readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
  } catch {
    return []
  }
  return entries
    .filter((entry) => entry.isFile() && READ.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .filter((path) => !path.includes('node_modules/'))
    .sort()
}
