/** `npm run docs`: writes the pages that are generated from tables in the sources. */
import { writeFileSync } from 'node:fs'
import { configurationPage } from '../src/config/index.js'

writeFileSync(new URL('../docs/configuration.md', import.meta.url), configurationPage())
