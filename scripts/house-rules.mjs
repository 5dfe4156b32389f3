/** `node scripts/house-rules.mjs [folder]`: one line for each broken house rule; exit code 1 when there is one. */
import { circleProblems } from './house/circles.mjs'
import { readHouse } from './house/read.mjs'
import { RULES } from './house/rules.mjs'
import { ROOT } from './lib/paths.mjs'

const MOST_SHOWN = 50

const house = readHouse(process.argv[2] ?? ROOT)
const broken = [...house.values()].flatMap((file) =>
  RULES.flatMap((rule) => rule(file, house)).map(({ line, text }) => `${file.path}:${line} ${text}`),
)
broken.push(...circleProblems(house))
for (const line of broken.slice(0, MOST_SHOWN)) console.log(line)
if (broken.length > MOST_SHOWN) console.log(`... and ${broken.length - MOST_SHOWN} more`)
if (broken.length > 0) process.exitCode = 1
