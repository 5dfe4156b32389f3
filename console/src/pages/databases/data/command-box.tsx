import { Autocomplete, Button, Group, Stack, Text } from '@mantine/core'
import { useSessionStorage } from '@mantine/hooks'
import { type KeyboardEvent, useEffect, useRef, useState } from 'react'
import type { DataPlane } from '../../../api/data-plane.js'
import { confirm } from '../../../components/confirm.js'
import { Panel } from '../../../components/page.js'
import { Term } from '../../../components/term.js'
import { printAnswer } from '../../../lib/resp.js'
import classes from './command-box.module.css'
import { isDestructive, parseLine, suggestionsFor } from './command-line.js'
import { refreshData } from './reads.js'

/** A sent command and its reply. */
interface Exchange {
  readonly id: number
  readonly line: string
  readonly answer: string
  readonly isError: boolean
}

const MAX_KEPT = 200
/** Longer replies are cut to keep the page usable. */
const MAX_SHOWN = 50_000

/** The command prompt, with history and suggestions. Destructive commands need a confirmation. */
export function CommandBox({ plane }: { plane: DataPlane }) {
  const [line, setLine] = useState('')
  const [exchanges, setExchanges] = useState<readonly Exchange[]>([])
  const history = useHistory(plane.databaseId, setLine)
  const log = useRef<HTMLElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls to a new reply.
  useEffect(() => {
    if (log.current) log.current.scrollTop = log.current.scrollHeight
  }, [exchanges])
  const note = (answer: string, isError: boolean) =>
    setExchanges((kept) => [...kept, { id: (kept.at(-1)?.id ?? 0) + 1, line, answer, isError }].slice(-MAX_KEPT))
  const submit = () => {
    const parsed = parseLine(line)
    history.add(line)
    setLine('')
    if (parsed.kind === 'broken') return note(parsed.problem, true)
    if (parsed.words.length === 0) return
    const send = () => sendWords(plane, parsed.words, note)
    if (isDestructive(parsed.words)) ask(line, send)
    else void send()
  }
  return (
    <Panel
      title="Commands"
      about="Works like redis-cli. Quote words that contain spaces; the arrow keys browse the history."
    >
      <Stack gap="md">
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scroll area must be reachable by keyboard. */}
        <section ref={log} className={classes.log} aria-label="Replies" aria-live="polite" tabIndex={0}>
          {exchanges.length === 0 ? (
            <Text size="sm" c="dimmed">
              Try <Term>SET greeting hello</Term>, then <Term>GET greeting</Term>.
            </Text>
          ) : (
            exchanges.map((exchange) => <ExchangeView key={exchange.id} exchange={exchange} />)
          )}
        </section>
        <form
          onSubmit={(event) => {
            event.preventDefault()
            submit()
          }}
        >
          <Group gap="xs" wrap="nowrap">
            <Autocomplete
              data-search
              aria-label="Command"
              placeholder="GET greeting"
              flex={1}
              size="sm"
              autoCapitalize="off"
              autoComplete="off"
              spellCheck={false}
              selectFirstOptionOnChange={false}
              data={suggestionsFor(line)}
              filter={({ options }) => options}
              value={line}
              onChange={setLine}
              onKeyDown={history.onKeyDown}
              styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
            />
            <Button type="submit" disabled={line.trim() === ''}>
              Send
            </Button>
          </Group>
        </form>
      </Stack>
    </Panel>
  )
}

function ask(line: string, send: () => Promise<void>): void {
  confirm({
    title: 'Send a destructive command',
    text: (
      <>
        <Term>{line}</Term> cannot be undone.
      </>
    ),
    action: 'Send the command',
    onConfirm: send,
  })
}

async function sendWords(
  plane: DataPlane,
  words: readonly string[],
  note: (answer: string, isError: boolean) => void,
): Promise<void> {
  try {
    note(printAnswer(words, await plane.send(...words)).slice(0, MAX_SHOWN), false)
  } catch (error) {
    note(`(error) ${error instanceof Error ? error.message : String(error)}`, true)
  }
  await refreshData(plane)
}

function ExchangeView({ exchange: { line, answer, isError } }: { exchange: Exchange }) {
  return (
    <div>
      <pre className={classes.line}>{line}</pre>
      <pre className={classes.answer} data-error={isError || undefined}>
        {answer}
      </pre>
    </div>
  )
}

/** The history, kept while the browser is open; the arrow keys browse it while nothing is suggested. */
function useHistory(databaseId: string, setLine: (line: string) => void) {
  const [lines, setLines] = useSessionStorage<string[]>({ key: `homeport-history-${databaseId}`, defaultValue: [] })
  const [back, setBack] = useState(0)
  const go = (to: number) => {
    const place = Math.max(0, Math.min(to, lines.length))
    setBack(place)
    setLine(place === 0 ? '' : (lines[lines.length - place] ?? ''))
  }
  return {
    add: (line: string) => {
      setBack(0)
      setLines([...lines.filter((kept) => kept !== line), line].slice(-MAX_KEPT))
    },
    onKeyDown: (event: KeyboardEvent<HTMLInputElement>) => {
      const { value } = event.currentTarget
      const isBrowsing = value === '' || back > 0
      if (event.key === 'ArrowUp' && isBrowsing) go(back + 1)
      else if (event.key === 'ArrowDown' && back > 0) go(back - 1)
      else return
      event.preventDefault()
    },
  }
}
