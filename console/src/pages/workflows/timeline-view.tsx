import { Text, UnstyledButton } from '@mantine/core'
import { useState } from 'react'
import { EmptyState } from '../../components/states.js'
import { Status } from '../../components/status.js'
import { counted, dateTime, duration } from '../../lib/format.js'
import { StepDetail } from './step.js'
import { type Bar, placeOf, type Segment, type Stage, type Timeline } from './timeline.js'
import classes from './timeline.module.css'
import { STEP_WORDS, type Step } from './words.js'

const TICKS = [0, 0.25, 0.5, 0.75, 1]
const WAITING = new Set(['Sleep', 'Wait', 'Invoke'])

/** The steps of a run on one time axis; a step opens to its details. */
export function TimelineView({
  timeline,
  runId,
  onRestart,
}: {
  timeline: Timeline
  runId: string
  /** Absent for users who may only read. */
  onRestart?: ((step: Step) => void) | undefined
}) {
  const [openKey, setOpenKey] = useState<string | undefined>(() => failedKeyOf(timeline))
  const toggle = (key: string) => setOpenKey(key === openKey ? undefined : key)
  if (timeline.stages.length === 0) return <EmptyState title="No steps yet" />
  return (
    <div>
      <Axis timeline={timeline} />
      {timeline.stages.map((stage) => (
        <StageView key={stage.key} stage={stage}>
          {(bar) => (
            <div key={bar.key}>
              <Line bar={bar} timeline={timeline} isOpen={bar.key === openKey} onToggle={() => toggle(bar.key)} />
              {bar.key === openKey ? (
                <section className={classes.detail} aria-label={`Step ${bar.name}`}>
                  <StepDetail bar={bar} runId={runId} onRestart={onRestart} />
                </section>
              ) : null}
            </div>
          )}
        </StageView>
      ))}
    </div>
  )
}

/** The key of the failed step, whose details are open at first. */
const failedKeyOf = ({ stages }: Timeline): string | undefined =>
  stages.flatMap(({ bars }) => bars).find(({ state }) => state === 'STEP_FAILED')?.key

function Axis({ timeline }: { timeline: Timeline }) {
  const lengthMs = timeline.endMs - timeline.startMs
  return (
    <div className={classes.axis} aria-hidden>
      <span>Step</span>
      <span className={classes.ticks}>
        {TICKS.map((part) => (
          <span key={part}>{part === 0 ? '0' : duration(Math.round(lengthMs * part))}</span>
        ))}
      </span>
      <span className={classes.took}>Took</span>
    </div>
  )
}

function StageView({ stage, children }: { stage: Stage; children: (bar: Bar) => React.ReactNode }) {
  if (!stage.isParallel) return <>{stage.bars.map(children)}</>
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would announce form fields.
    <div
      className={classes.branches}
      role="group"
      aria-label={`${counted(stage.bars.length, 'branch', 'branches')} in parallel`}
    >
      <div className={classes.branchesTitle}>{counted(stage.bars.length, 'branch', 'branches')} in parallel</div>
      {stage.bars.map(children)}
    </div>
  )
}

function Line({
  bar,
  timeline,
  isOpen,
  onToggle,
}: {
  bar: Bar
  timeline: Timeline
  isOpen: boolean
  onToggle: () => void
}) {
  const { tone, title } = STEP_WORDS[bar.state]
  const tookMs = bar.endMs - bar.startMs
  return (
    <UnstyledButton className={classes.line ?? ''} aria-expanded={isOpen} onClick={onToggle}>
      <span style={{ minWidth: 0 }}>
        <Status tone={tone}>{bar.name}</Status>
        <Text size="xs" c="dimmed" component="span" display="block" pl={15} className="truncate">
          {bar.type} · {title.toLowerCase()}
          {bar.failuresMs.length > 0 ? ` · ${counted(bar.failuresMs.length, 'failed attempt')}` : ''}
        </Text>
      </span>
      <Track bar={bar} timeline={timeline} />
      <Text size="sm" component="span" className={classes.took ?? ''}>
        {bar.step.stepType === 'Initial' ? '' : duration(tookMs)}
      </Text>
    </UnstyledButton>
  )
}

/** Whether a segment of a bar is a wait, in which nobody works on the step. */
const isWait = ({ phase }: Segment): boolean => phase === 'flow-control' || phase === 'line' || phase === 'back-off'

function styleOf(segment: Segment, timeline: Timeline) {
  const { left, width } = placeOf(segment, timeline)
  return { left: part(left), width: part(width) }
}

const part = (share: number): string => `${(share * 100).toFixed(3)}%`

function Track({ bar, timeline }: { bar: Bar; timeline: Timeline }) {
  const { left, width } = placeOf(bar, timeline)
  return (
    <span
      className={classes.track}
      title={`${dateTime(bar.startMs)} to ${bar.isOpen ? 'now' : dateTime(bar.endMs)}`}
      aria-hidden
    >
      <span
        className={classes.bar}
        data-tone={STEP_WORDS[bar.state].tone}
        data-waits={WAITING.has(bar.type) || undefined}
        // Keeps the last minimal bar inside its track.
        style={{ left: `min(${part(left)}, 100% - 4px)`, width: part(width) }}
      />
      {bar.segments.filter(isWait).map((segment) => (
        <span key={segment.startMs} className={classes.wait} style={styleOf(segment, timeline)} />
      ))}
      {bar.failuresMs.map((atMs) => (
        <span
          key={atMs}
          className={classes.failure}
          style={{ left: part(placeOf({ startMs: atMs, endMs: atMs }, timeline).left) }}
        />
      ))}
    </span>
  )
}
