//! Our side of the UCI protocol. Never searches or evaluates by itself.
