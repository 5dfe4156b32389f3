/**
 * `node scripts/house-rules.mjs [folder]`: prints one line per violation; exit code 1 if there is one.
 * `node scripts/house-rules.mjs --words <path prefix>`: prints only the words that the glossary replaces, all of them.
 */
import { circleProblems } from './house/circles.mjs'
import { readSources } from './house/read.mjs'
import { RULES } from './house/rules.mjs'
import { wordProblems } from './house/words.mjs'
import { ROOT } from './lib/paths.mjs'

const MAX_SHOWN = 50

const [first, prefix] = process.argv.slice(2)
const onlyWords = first === '--words'
const broken = onlyWords ? wordProblems(ROOT, prefix) : allProblems(first ?? ROOT)
const shown = onlyWords ? broken : broken.slice(0, MAX_SHOWN)
for (const line of shown) console.log(line)
if (broken.length > shown.length) console.log(`... and ${broken.length - shown.length} more`)
if (broken.length > 0) process.exitCode = 1

function allProblems(root) {
  const files = readSources(root)
  const violations = [...files.values()].flatMap((file) =>
    RULES.flatMap((rule) => rule(file, files)).map(({ line, text }) => `${file.path}:${line} ${text}`),
  )
  return [...violations, ...circleProblems(files), ...wordProblems(root)]
}
