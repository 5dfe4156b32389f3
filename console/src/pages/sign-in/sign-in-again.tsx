import { Anchor, Modal, Text } from '@mantine/core'
import type { ConsoleSession } from '../../../../src/contract/console/session.js'
import { SignInForm } from './sign-in-form.js'

/** Hides a page whose session has ended, and asks for the key: what was typed into the page stays there meanwhile. */
export function SignInAgain({
  isOpen,
  email,
  leavesTo,
  onSignedIn,
}: {
  isOpen: boolean
  email: string
  /** The sign-in page, for those who do not need what they have typed. */
  leavesTo: string
  onSignedIn: (session: ConsoleSession) => void
}) {
  return (
    <Modal
      opened={isOpen}
      onClose={() => undefined}
      title="Your session has ended"
      size="sm"
      withCloseButton={false}
      closeOnClickOutside={false}
      closeOnEscape={false}
      // Above the dialogs of the page, which shows nothing of the account any more.
      zIndex={1_000}
      overlayProps={{ backgroundOpacity: 1, color: 'var(--hp-ground)' }}
    >
      <SignInForm email={email} onSignedIn={async (session) => onSignedIn(session)}>
        <Text size="sm">
          Sign in again to go on where you were: what you have typed is still there. Or{' '}
          <Anchor href={leavesTo} size="sm" underline="always">
            leave this page
          </Anchor>
          .
        </Text>
      </SignInForm>
    </Modal>
  )
}
